"""How the documentation is built: `make docs`, warnings are errors. Nothing is fetched."""

import logging
import sys
from pathlib import Path

import stiction

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "stiction"
author = copyright = "The stiction authors"
release = version = stiction.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "contact_models", "docstrings", "mathml"]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"stiction {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Array", "Indices", "Mask")}
python_use_unqualified_type_names = True
maximum_signature_line_length = 80

# A folder of pages may be empty. Sphinx gives that warning no type, so that it cannot be named in
# `suppress_warnings`.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)

nitpicky = True
# Types of other packages have no pages here.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|scipy|mujoco|collections|os|pathlib|enum)\..*"),
    # What a caller does not meet, or meets as an attribute only.
    (
        r"py:.*",
        r"stiction\.(status\.Code|simulate\.settings\.Options|"
        r"contact\.problem\.arrays\..*|contact\.certificate\.grading\.(Law|Table))",
    ),
    (r"py:.*", r"(M|NDArray|ArrayLike|Array|Indices|Mask|Path|PathLike|Any)"),
]
