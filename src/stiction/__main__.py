"""`python -m stiction`: the command line."""

import sys

from stiction.cli import main

sys.exit(main())
