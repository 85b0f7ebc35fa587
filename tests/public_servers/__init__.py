"""Public MCP servers that nobody here wrote, used from an agent's file."""
