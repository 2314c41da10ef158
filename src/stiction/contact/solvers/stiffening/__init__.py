"""Springs in place of rows, stiffened until the law holds: `curve.py` has the method."""
