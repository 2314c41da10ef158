"""Problems by blocks, island by island: which of the ways to an answer is tried when."""
