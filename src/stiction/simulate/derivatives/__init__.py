"""Derivatives of a time step with respect to state, controls and the model's parameters."""
