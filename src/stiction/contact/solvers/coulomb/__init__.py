"""Coulomb's law on a scaled problem: the polygon by pivoting, the cone by Newton's method."""
