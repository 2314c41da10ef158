"""The exact cone as a fixed point of conic programs."""
