"""The problem families, scenes and experiments of the papers."""
