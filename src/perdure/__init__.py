"""Perdure: LLM agents that outlive their processes.

Importing this package does nothing; each name is loaded when it is first used, so that a workflow's sandbox, which
imports the package anew, loads none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.app.agent import Agent
    from perdure.app.app import App, open_app
    from perdure.app.events import TaskEvent
    from perdure.app.loading import load_agent
    from perdure.app.settings import Settings
    from perdure.app.task import Task
    from perdure.core.agent import Budget, RetryPolicy
    from perdure.core.artifacts import Artifact, File
    from perdure.core.errors import OutcomeUnknown, PerdureError, RunFailed, ToolError
    from perdure.core.ports import Check
    from perdure.core.rulebook import ApprovalRule
    from perdure.core.tool_rules import ToolRules
    from perdure.tools.call import Call
    from perdure.tools.function import tool
    from perdure.tools.http import OpenApiTools
    from perdure.tools.mcp.server import ClientCredentials, McpServer
    from perdure.tools.once import ONCE_TABLE, once_check

__all__ = [
    "ONCE_TABLE",
    "Agent",
    "App",
    "ApprovalRule",
    "Artifact",
    "Budget",
    "Call",
    "Check",
    "ClientCredentials",
    "File",
    "McpServer",
    "OpenApiTools",
    "OutcomeUnknown",
    "PerdureError",
    "RetryPolicy",
    "RunFailed",
    "Settings",
    "Task",
    "TaskEvent",
    "ToolError",
    "ToolRules",
    "load_agent",
    "once_check",
    "open_app",
    "tool",
]

_HOMES = {
    "ONCE_TABLE": "perdure.tools.once",
    "Agent": "perdure.app.agent",
    "App": "perdure.app.app",
    "ApprovalRule": "perdure.core.rulebook",
    "Artifact": "perdure.core.artifacts",
    "Budget": "perdure.core.agent",
    "Call": "perdure.tools.call",
    "Check": "perdure.core.ports",
    "ClientCredentials": "perdure.tools.mcp.server",
    "File": "perdure.core.artifacts",
    "OpenApiTools": "perdure.tools.http",
    "McpServer": "perdure.tools.mcp.server",
    "OutcomeUnknown": "perdure.core.errors",
    "PerdureError": "perdure.core.errors",
    "RetryPolicy": "perdure.core.agent",
    "RunFailed": "perdure.core.errors",
    "Settings": "perdure.app.settings",
    "Task": "perdure.app.task",
    "TaskEvent": "perdure.app.events",
    "ToolError": "perdure.core.errors",
    "ToolRules": "perdure.core.tool_rules",
    "load_agent": "perdure.app.loading",
    "once_check": "perdure.tools.once",
    "open_app": "perdure.app.app",
    "tool": "perdure.tools.function",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    return getattr(import_module(home), name)
