"""Stores that keep runs, and the carrier that keeps its jobs beside them."""
