"""Drumwright and Shell's convex program."""
