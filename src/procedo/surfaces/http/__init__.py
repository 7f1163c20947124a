"""The HTTP server: MCP over Streamable HTTP, the inbox page, and who may come in."""
