"""Newton's method in velocities, with proximal impulses."""
