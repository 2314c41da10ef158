"""Height fields, and the seams between geoms."""
