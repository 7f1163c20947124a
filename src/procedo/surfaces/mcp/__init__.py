"""The MCP surface: eight tools, questions to people, and serving over standard input and output."""
