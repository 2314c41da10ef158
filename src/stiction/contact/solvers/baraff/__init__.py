"""Baraff's driving of one contact after the other."""
