"""Where people and programs meet procedo: MCP, the command line, and the views they share."""
