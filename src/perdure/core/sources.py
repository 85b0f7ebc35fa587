"""Sources of tools: what must be asked before anybody knows which tools there are.

A Python function is a tool as it stands. An MCP server's tools, or an HTTP service's, are known once its listing or its
document was read, and can be called as long as it stays open. Whoever starts or works on tasks opens an agent's
sources first (`Agent.opened`); from then on there are only tools.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from perdure.core.ports import ToolPort


@runtime_checkable
class ToolSource(Protocol):
    """Tools that are known once somebody has asked for them: an MCP server's, an HTTP service's."""

    @property
    def name(self) -> str:
        """What its tools' names begin with: `name.tool`."""
        ...

    def opened(self) -> AbstractAsyncContextManager[tuple[ToolPort, ...]]:
        """Ask for the tools, and keep what their calls need until the end.

        The tools' specs and schemas stay good after the end; calls do not.

        Raises:
            ConfigurationError: A setting, a rule or a tool cannot work; names it and the fix.
            Unavailable: The source does not answer.
        """
        ...
