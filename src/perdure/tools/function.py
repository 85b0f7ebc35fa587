"""Python functions as tools: the decorator `tool` and what it makes.

A `FunctionTool` is still the function: called directly it does just what it did before, with the same types. The
harness calls it through `invoke`, with arguments held to the schema and the call it serves.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from pydantic import JsonValue, ValidationError

from perdure.core import limits, ports
from perdure.core.agent import EffectClass, InDoubt, RetryPolicy, ToolSpec
from perdure.core.artifacts import Artifact
from perdure.core.errors import ConfigurationError, ToolError
from perdure.core.ports import Check, ToolSchema
from perdure.core.tool_rules import checked_spec, settling_s
from perdure.tools.asking import asked, refuse_unknown_arguments
from perdure.tools.call import Call, is_call
from perdure.tools.documentation import summary
from perdure.tools.results import as_json
from perdure.tools.signature import NAME, Signature

P = ParamSpec("P")
R = TypeVar("R")

CheckFunction = Callable[[Any], object]
"""A check: takes the idempotency key, or a `Call` where its parameter is annotated so; plain or async."""


class FunctionTool(Generic[P, R]):
    """A function that models can call; made by `tool`."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        spec: ToolSpec,
        description: str | None,
        check: CheckFunction | None,
        settle_s: float,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._spec = spec
        self._signature = Signature(spec.name, function)
        self._check = check
        self._check_takes_call = check is not None and _takes_call(spec.name, check)
        self._settle_s = settle_s
        text = summary(function.__doc__) if description is None else description
        self._schema = ToolSchema(name=spec.name, description=text, parameters=self._signature.schema)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no ledger, no validation."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self._spec.name} ({self._spec.effect})>"

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
        """Seconds between the end of a call and its check; 0 without a check, for there is nothing to wait for."""
        return 0.0 if self._check is None else self._settle_s

    @property
    def check_name(self) -> str:
        """The name of its check, for people; empty without one."""
        return "" if self._check is None else str(getattr(self._check, "__name__", type(self._check).__name__))

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments break the schema, in words that help a model to correct them, or None."""
        return self._signature.problem(arguments)

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return the arguments as the function will get them, in values of JSON: what rules are for."""
        return self._signature.as_read(arguments)

    async def invoke(self, arguments: dict[str, JsonValue], call: ports.Call) -> JsonValue | Artifact:
        """Call the function once and return its result as JSON; a value without a JSON form becomes a text.

        An `Artifact` is returned as it is.

        Raises `ToolError` for arguments that do not fit, and whatever the function raises. A plain function runs in
        a thread, which cannot be interrupted: a cancelled call waits up to `STOP_GRACE_S` for its end and returns
        what it returned, else the cancellation goes on and so does the thread. The caller thus runs `invoke` as an
        asyncio task of its own and remembers that it cancelled it.
        """
        try:
            keywords = self._signature.read(arguments, Call.of(call))
        except ValidationError as error:
            raise ToolError(self._signature.problem(arguments) or str(error)) from error
        function = cast(Callable[..., object], self._function)
        if inspect.iscoroutinefunction(function):
            value = await function(**keywords)
        else:
            value = await _awaited(await _in_thread(functools.partial(function, **keywords)))
        return value if isinstance(value, Artifact) else as_json(value)

    async def check(self, call: ports.Call) -> Check:
        """Ask the tool's own check what became of the call's key.

        A `Check` is taken as it is, None as `not_yet`, any other answer as `happened` with that result. A bare
        bool and an empty answer (0, "", []) could mean either and raise `ConfigurationError`; what the check raises
        goes on. Both leave the outcome unknown.
        """
        if self._check is None:
            return Check.unknown()
        given: object = Call.of(call) if self._check_takes_call else call.idempotency_key
        if inspect.iscoroutinefunction(self._check):
            answer = await self._check(given)
        else:
            answer = await _awaited(await asyncio.to_thread(self._check, given))
        if isinstance(answer, Check):
            return answer
        if answer is None:
            return Check.not_yet()
        if isinstance(answer, bool) or (_countable(answer) and not answer):
            raise ConfigurationError(
                f"tool {self._spec.name!r}, check",
                f"{answer!r} does not say whether the effect happened; return Check.happened(result), Check.never(), "
                "Check.not_yet() or Check.unknown()",
            )
        return Check.happened(as_json(answer))


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    effect: EffectClass = "once",
    check: CheckFunction | None = None,
    parallel: bool | None = None,
    in_doubt: InDoubt = "tell",
    timeout_s: float = limits.TOOL_TIMEOUT_S,
    heartbeat_timeout_s: float = limits.HEARTBEAT_TIMEOUT_S,
    retry: RetryPolicy | None = None,
    settle_s: float | None = None,
    ask: str | bool = False,
    name: str | None = None,
    description: str | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effect: EffectClass = "once",
    check: CheckFunction | None = None,
    parallel: bool | None = None,
    in_doubt: InDoubt = "tell",
    timeout_s: float = limits.TOOL_TIMEOUT_S,
    heartbeat_timeout_s: float = limits.HEARTBEAT_TIMEOUT_S,
    retry: RetryPolicy | None = None,
    settle_s: float | None = None,
    ask: str | bool = False,
    name: str | None = None,
    description: str | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function, plain or async: `@tool` or `@tool(effect=…)`.

    Its schema comes from the annotations, its description from the docstring's first paragraph, the parameters' from
    `Annotated[…, Field(description=…)]` or a Google-style `Args:` section. A parameter annotated `Call` gets the call
    it serves and is not shown to the model. Raise `ToolError` to say that the effect did not happen, `OutcomeUnknown`
    (or anything else) where that cannot be told: what may have happened is asked of the check, never repeated.

    Args:
        function: The function, where the decorator is used without parentheses.
        effect: `read` and `idempotent` may be begun again with the same key; `once` (the default) never is.
        check: Asked what became of a key whose call ended without a result. Takes the key, or a `Call` where its
            parameter is annotated so. Answers a `Check`, None (not so far), or what the call would have returned.
        in_doubt: Who lives with an outcome that neither the ledger nor the check can tell. `tell` (the default): the
            model is told "outcome unknown". `ask`: a person is asked whether it happened, and the call waits for
            their word. `fail`: the run ends, and a person takes over.
        parallel: Whether it may run beside other calls of the same turn. Default: only a `read`.
        timeout_s: Seconds that one attempt may take.
        heartbeat_timeout_s: Seconds without a sign of life after which its worker is taken for lost.
        retry: How often and how fast attempts of a `read` or `idempotent` call are made again.
        settle_s: Seconds to wait before `check`: how long a request may still be on its way. At most half of
            `timeout_s`; default 5, or that half.
        ask: Calls that wait for a person's approval: a condition over the arguments (`"amount > 100"`), or True for
            each. An agent's own rules (`Agent.approvals`) go before it.
        name: What the model calls it. Default: the function's name.
        description: What the model is told of it, in place of the docstring.

    Raises:
        ConfigurationError: Names the tool, the parameter and the fix.
    """

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        called = _name_of(function) if name is None else name
        if NAME.fullmatch(called) is None:
            raise ConfigurationError(
                f"tool {called!r}, name", "providers refuse this name; use 1 to 64 of a-z, A-Z, 0-9, _ and -"
            )
        spec = checked_spec(
            called,
            effect=effect,
            parallel=parallel,
            in_doubt=in_doubt,
            timeout_s=timeout_s,
            heartbeat_timeout_s=heartbeat_timeout_s,
            retry=retry,
        )
        _refuse_function(called, function)
        settles_s = settling_s(called, settle_s, timeout_s)
        condition = asked(called, ask)
        if condition:
            spec = spec.model_copy(update={"ask": condition})
        made = FunctionTool(function, spec=spec, description=description, check=check, settle_s=settles_s)
        refuse_unknown_arguments(called, condition, made.schema.parameters)
        return made

    return make if function is None else make(function)


def _name_of(function: object) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ConfigurationError(f"tool {function!r}", "it has no name of its own; decorate a function")
    return name


def _refuse_function(name: str, function: object) -> None:
    field = f"tool {name!r}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(field, "it is a generator; return the whole result, for example as a list")
    if not inspect.isroutine(function):
        raise ConfigurationError(field, f"{function!r} is not a function; wrap it in one, with annotated parameters")


def _takes_call(name: str, check: CheckFunction) -> bool:
    """Return whether the check's parameter is annotated `Call`; refuses a check that cannot take one argument."""
    field = f"tool {name!r}, check"
    if not callable(check):
        raise ConfigurationError(field, f"{check!r} cannot be called; give a function that takes the key")
    parameters = list(inspect.signature(check).parameters.values())
    required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    given_by_position = [parameter for parameter in parameters if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    if not given_by_position or len(required) > 1:
        raise ConfigurationError(field, "it must take exactly one argument, the idempotency key or a `Call`")
    annotation = given_by_position[0].annotation
    return is_call(annotation) or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Call")


def _countable(answer: object) -> bool:
    return isinstance(answer, int | float | str | bytes | list | tuple | dict | set | frozenset)


async def _awaited(value: object) -> object:
    """Return what a plain function that hands out an awaitable (a wrapped coroutine function) stands for."""
    return await cast(Awaitable[object], value) if inspect.isawaitable(value) else value


async def _in_thread(function: Callable[[], object]) -> object:
    """Run a plain function in a thread, with the caller's context variables. Cancellation: see `invoke`."""
    claim = threading.Lock()  # Taken once, by the thread that starts or by the cancellation that came before it.

    def run() -> object:
        if not claim.acquire(blocking=False):
            return None
        try:
            return function()
        except StopIteration as error:
            raise RuntimeError("the function raised StopIteration, which a future cannot carry") from error
        except SystemExit as error:
            raise RuntimeError("the function called sys.exit, which would end the worker") from error

    thread = asyncio.create_task(asyncio.to_thread(run))
    try:
        await asyncio.wait({thread})
    except asyncio.CancelledError:
        if claim.acquire(blocking=False):
            thread.cancel()
            raise
        thread.add_done_callback(_noticed)
        done, _ = await asyncio.wait({thread}, timeout=limits.STOP_GRACE_S)
        if not done:
            raise
    return thread.result()


def _noticed(thread: asyncio.Future[object]) -> None:
    """Take note of how an abandoned thread ended; nobody waits for it any more."""
    if not thread.cancelled():
        thread.exception()
