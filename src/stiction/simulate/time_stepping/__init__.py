"""Steps of fixed length, in one compiled loop."""
