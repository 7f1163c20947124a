"""Connections to MCP servers, each for one contract and no longer than it is open."""
