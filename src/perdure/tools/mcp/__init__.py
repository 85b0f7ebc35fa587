"""MCP servers as sources of tools. Nothing here imports the SDK before a server is opened."""

from perdure.tools.mcp.server import ClientCredentials, McpServer

__all__ = ["ClientCredentials", "McpServer"]
