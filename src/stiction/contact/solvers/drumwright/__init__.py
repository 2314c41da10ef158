"""Drumwright's algorithms: normals by principal pivoting, rows that must hold, viscous drag."""
