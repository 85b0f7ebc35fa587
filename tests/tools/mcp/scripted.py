"""A connection to a server that is a list of answers, for tests of what they mean."""

import asyncio
from typing import Any, Literal, cast

from mcp.client.client import Client

from perdure.core.agent import EffectClass
from perdure.core.ports import ToolSchema
from perdure.core.tool_rules import ToolRules, ruled_spec
from perdure.tools.environment import Environment
from perdure.tools.json_arguments import JsonArguments
from perdure.tools.mcp.connection import Connection, Live
from perdure.tools.mcp.mcp_tool import Checking, McpTool


class Scripted:
    """Answers requests in order: a result is returned, an error raised, a function called and awaited."""

    def __init__(self, *answers: Any, environment: Environment | None = None) -> None:
        self._answers = list(answers)
        self.environment = environment or Environment()
        self.sent: list[Any] = []
        self.live = Live(cast(Client, self), asyncio.Event())
        self.live.changed = False

    @property
    def session(self) -> "Scripted":
        return self

    @property
    def connection(self) -> Connection:
        return _Connected(self.live, self.environment)

    def tool(self, effect: EffectClass = "once", failed: Literal["did_not_happen"] | None = None) -> McpTool:
        """Return its tool `bank.pay`, whose check is `find`."""
        return McpTool(
            self.connection,
            self.environment,
            "pay",
            spec=ruled_spec("bank.pay", effect, ToolRules()),
            schema=ToolSchema(name="bank.pay", description="", parameters={}),
            arguments=JsonArguments("bank.pay", {"type": "object"}),
            failed=failed,
            checking=Checking("find", "key"),
            settle_s=0.0,
        )

    async def send_request(self, request: Any, _kind: Any, **_options: Any) -> Any:
        self.sent.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await answer() if callable(answer) else answer


class _Connected(Connection):
    """One that is connected already, and stays so."""

    def __init__(self, live: Live, environment: Environment) -> None:
        super().__init__("bank", cast(Any, None), 1.0, environment.masked)
        self._only = live

    async def live(self) -> Live:
        return self._only
