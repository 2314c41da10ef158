"""Steps without events, each compiled as a whole; `steps.py` says which those are."""
