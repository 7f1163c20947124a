"""Deterministic work that the server does itself."""
