"""Problems by blocks: their memory, their linear system, and how they move without contact."""
