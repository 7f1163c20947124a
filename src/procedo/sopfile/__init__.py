"""Text to procedure: reads, compiles, checks and writes definitions."""
