"""`ContactProblem`, the forms that kernels take it in, and its islands."""
