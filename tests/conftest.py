import os

# What a test writes to standard error should not depend on what earlier ones have compiled.
os.environ.setdefault("STICTION_QUIET", "1")
