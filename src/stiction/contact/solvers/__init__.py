"""One file or folder per algorithm."""
