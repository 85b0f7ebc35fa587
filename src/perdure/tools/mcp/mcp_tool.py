"""One tool of an MCP server, and what its server's results mean for an effect.

- A result: it happened.
- A result with `isError`: the server says that the tool failed, which is not to say that nothing happened. A `once`
  call is in doubt then, unless the operator's rules take the server's word for it (`failed="did_not_happen"`). Of a
  call that is safe to repeat it is an error, which says of a later attempt that an earlier one may have taken effect.
- A refusal that a server may give after its tool has run: the same. Only one of its own state begins the call anew.
- A result that asks for input: it has not ended. A person is asked, and the call goes on with the server's own state.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
from pydantic import JsonValue, TypeAdapter

from perdure.core.agent import ToolSpec
from perdure.core.artifacts import Asks, Returned, WithFiles
from perdure.core.errors import BegunError, ToolError
from perdure.core.mcp_limits import MCP_RESTART_DELAY_FIRST_S, MCP_RESTART_DELAY_MAX_S, QUESTIONS_PER_CALL_MAX
from perdure.core.ports import Call, Check, ToolSchema
from perdure.tools import notes
from perdure.tools.environment import Environment
from perdure.tools.json_arguments import JsonArguments
from perdure.tools.mcp import contents, questions
from perdure.tools.mcp.checks import read_check
from perdure.tools.mcp.claims import digest_of
from perdure.tools.mcp.connection import Connection
from perdure.tools.mcp.exchange import KEY, STATE_REFUSED, NotSent, Refused, exchanged
from perdure.tools.mcp.questions import Answers

_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
_CHECKED: TypeAdapter[CallToolResult] = TypeAdapter(CallToolResult)


@dataclass(frozen=True)
class Checking:
    """The tool that tells what became of a key, and its parameter for the key."""

    tool: str
    parameter: str


class McpTool:
    """A tool of a server, called over the worker's one connection to it."""

    def __init__(
        self,
        connection: Connection,
        environment: Environment,
        tool: str,
        *,
        spec: ToolSpec,
        schema: ToolSchema,
        arguments: JsonArguments,
        failed: Literal["in_doubt", "did_not_happen"] | None,
        checking: Checking | None,
        settle_s: float,
    ) -> None:
        self._connection = connection
        self._environment = environment
        self._tool = tool
        self._spec = spec
        self._schema = schema
        self._arguments = arguments
        self._failed = failed
        self._checking = checking
        self._settle_s = settle_s

    def __repr__(self) -> str:
        return f"<MCP tool {self._spec.name} ({self._spec.effect})>"

    @property
    def spec(self) -> ToolSpec:
        """What the workflow records of the tool."""
        return self._spec

    @property
    def schema(self) -> ToolSchema:
        """What the model sees of the tool."""
        return self._schema

    @property
    def settle_s(self) -> float:
        """Seconds between the end of a call and its check; 0 without a check."""
        return 0.0 if self._checking is None else self._settle_s

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments break the schema, or None."""
        return self._arguments.problem(arguments)

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return those arguments that the server's tool declares: it may ignore the others; see `Reads`."""
        return self._arguments.declared(arguments)

    async def ready(self, registered: str | None) -> str:
        """Return why no call may begin: the server's tool is not what the task was told.

        Raises `Unavailable` when the server does not answer.
        """
        tool = (await self._connection.listed()).get(self._tool)
        name = self._spec.name
        if tool is None:
            return f"the MCP server {self._connection.name!r} has no tool {self._tool!r} any more; a new task knows"
        if registered is not None and digest_of(tool) != registered:
            return (
                f"the schema or class of {name} changed at its server since this task began; a new task knows the new"
            )
        return ""

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> Returned:
        """Call the tool once; see `ToolPort.invoke`."""
        return await self._called(arguments, call, Answers())

    async def resume(self, arguments: dict[str, JsonValue], call: Call, kept: JsonValue, answer: str) -> Returned:
        """Go on with a call that asked, with a person's answer; asks again where that does not fit, or for more."""
        told = questions.answered(self._spec.name, kept, answer)
        if isinstance(told, Asks):
            return questions.masked(told, self._environment)
        return await self._called(arguments, call, told)

    async def _called(self, arguments: dict[str, JsonValue], call: Call, answers: Answers) -> Returned:
        """Call the tool with what was answered so far, as often as that suffices for it."""
        for _ in range(QUESTIONS_PER_CALL_MAX):
            try:
                given = await self._sent(arguments, call, answers)
            except Refused as error:
                if error.reason != STATE_REFUSED or answers.state is None or answers.again:
                    raise self._failure(call, str(error), begun=error.begun) from error
                answers = Answers(said=answers.said, again=True)
                continue
            if isinstance(given, CallToolResult):
                return self._returned(given, call)
            if given.input_requests:
                found = questions.asked(self._spec.name, given, answers)
                if isinstance(found, Asks):
                    return questions.masked(found, self._environment)
                answers = found
            else:  # it wants to be called again with nothing but its own state
                answers = replace(answers, responses=None, state=given.request_state)
                await asyncio.sleep(MCP_RESTART_DELAY_FIRST_S)
        raise BegunError(f"{self._spec.name} asked to be called again {QUESTIONS_PER_CALL_MAX} times in a row")

    async def _sent(
        self, arguments: dict[str, JsonValue], call: Call, answers: Answers
    ) -> CallToolResult | InputRequiredResult:
        said = notes.taken()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            said.say(f"{share}: {self._environment.masked(message)}" if message else share, about="progress")

        params = CallToolRequestParams(
            name=self._tool,
            arguments=arguments,
            input_responses=answers.responses,
            request_state=answers.state,
            _meta={KEY: call.idempotency_key},
        )
        request = CallToolRequest(params=params)
        try:
            return await exchanged(self._connection, request, _RESULT, on_progress, said.say)
        except NotSent as error:
            raise self._not_begun(error) from error

    def _not_begun(self, error: Exception) -> Exception:
        """Return what a call that reached nobody ends with: it did not happen; tried again where that is safe."""
        return ToolError(f"Not begun: {error}") if self._spec.effect == "once" else BegunError(str(error))

    def _returned(self, given: CallToolResult, call: Call) -> JsonValue | WithFiles:
        if not given.is_error:
            return contents.masked(contents.returned(self._spec.name, given), self._environment)
        text = self._environment.masked(contents.text_of(given.content)) or "It gives no reason."
        raise self._failure(call, text, begun=True)

    def _failure(self, call: Call, text: str, *, begun: bool) -> Exception:
        """Return what a call ends with of which the server says that it failed; `begun` where it may have run."""
        if begun and self._spec.effect == "once" and self._failed != "did_not_happen":
            return BegunError(f"{self._spec.name} says that it failed: {text}")
        earlier = ""
        if self._spec.effect == "idempotent" and call.attempt > 1:
            earlier = " An earlier attempt of this call may have taken effect."
        return ToolError(f"{text}{earlier}")

    async def check(self, call: Call) -> Check:
        """Ask the server's own check what became of the call's key; a server that is away is waited for."""
        if self._checking is None:
            return Check.unknown()
        arguments: dict[str, Any] = {self._checking.parameter: call.idempotency_key}
        request = CallToolRequest(params=CallToolRequestParams(name=self._checking.tool, arguments=arguments))
        given = await _until_sent(lambda: exchanged(self._connection, request, _CHECKED))
        found = read_check(self._checking.tool, given)
        return found.model_copy(update={"result": self._environment.masked_json(found.result)})


async def _until_sent(send: Callable[[], Awaitable[CallToolResult]]) -> CallToolResult:
    """Try again, ever more seldom, as long as nobody takes it; whoever waits for the check says for how long."""
    pause_s = MCP_RESTART_DELAY_FIRST_S
    while True:
        try:
            return await send()
        except NotSent:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MCP_RESTART_DELAY_MAX_S)
