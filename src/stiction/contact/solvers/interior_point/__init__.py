"""An interior point with De Saxce's term in its matrix: `iteration.py`; its rows: `rows.py`."""
