"""Smooth motion between events."""
