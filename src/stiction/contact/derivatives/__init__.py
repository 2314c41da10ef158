"""Derivatives of a solved contact problem: the implicit function theorem at its modes."""
