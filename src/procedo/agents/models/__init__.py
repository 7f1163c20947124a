"""Models behind one port. The library that knows the messages is imported at the first delegated step."""
