"""Putting the server into the configuration of MCP hosts, and taking it out again."""
