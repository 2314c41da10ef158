"""Steps as differentiable functions, for PyTorch (`torch`) and JAX (`jax`).

Each is imported when it is asked for, and needs the package of its name.
"""

__all__: list[str] = []
