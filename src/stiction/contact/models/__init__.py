"""Contact models: one file each."""
