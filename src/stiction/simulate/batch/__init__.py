"""Many simulations at once, on threads: `Batch` and `rollout`."""
