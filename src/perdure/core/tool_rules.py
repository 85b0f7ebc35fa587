"""What is known of a tool from two sides: what its source claims, and what its operator says over it.

A source's claim (an MCP server's hints, an HTTP method) is not proof. The operator's rules win, field by field; what
neither says is the default, and the default effect is `once`. Every kind of tool gets its spec here, so that the same
mistakes are refused with the same words.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from pydantic import Field, JsonValue

from perdure.core import limits
from perdure.core.agent import ASK_PARTICIPANT, EffectClass, InDoubt, RetryPolicy, ToolSpec
from perdure.core.content import Frozen
from perdure.core.digests import digest
from perdure.core.errors import ConfigurationError

_SETTLE_SHARE_MAX: Final = 0.5
"""Settling may take this share of the tool's timeout at most: the check must still fit in the same attempt."""

_WILD: Final = frozenset("*?[")


class ToolRules(Frozen):
    """What an operator says of a tool, over what its source claims. None: as the source says, or the default.

    `effect` is its class, `check` the tool of the same source that tells what became of a key. `failed` says what an
    MCP server's error result means for a `once` call: nothing is known (`in_doubt`, the default), or that its word is
    good that nothing happened (`did_not_happen`). Times in seconds.
    """

    effect: EffectClass | None = None
    parallel: bool | None = None
    in_doubt: InDoubt | None = None
    timeout_s: float | None = Field(default=None, gt=0)
    heartbeat_timeout_s: float | None = Field(default=None, gt=0)
    retry: RetryPolicy | None = None
    settle_s: float | None = Field(default=None, ge=0)
    check: str | None = None
    failed: Literal["in_doubt", "did_not_happen"] | None = None


def is_pattern(name: str) -> bool:
    """Whether this names several tools (`*`, `?` and `[…]`, as in file names) and not just one."""
    return not _WILD.isdisjoint(name)


def rules_for(tool: str, rules: Mapping[str, ToolRules]) -> ToolRules:
    """Return the rules of a tool: those under its own name, else those of the first pattern that fits, alone."""
    if tool in rules:
        return rules[tool]
    return next((given for pattern, given in rules.items() if fnmatchcase(tool, pattern)), ToolRules())


def is_offered(tool: str, patterns: Iterable[str]) -> bool:
    """Whether one of these names or patterns fits a tool's name; capitals count."""
    return any(tool == pattern or fnmatchcase(tool, pattern) for pattern in patterns)


def schema_digest(parameters: Mapping[str, JsonValue], claimed: EffectClass) -> str:
    """Return the digest under which a tool of a source is registered with a task.

    It covers what calls are held to: the parameters, and the class that the source claims. A description may change.
    """
    return digest({"parameters": dict(parameters), "claimed": claimed})


def ruled_spec(name: str, claimed: EffectClass, rules: ToolRules, schema: str | None = None) -> ToolSpec:
    """Return the spec of a source's tool: what the source claims under what the operator says.

    Raises `ConfigurationError` where the rules cannot hold together. What they say of doubts is nothing to a tool that
    only reads by its source's word.
    """
    effect = claimed if rules.effect is None else rules.effect
    in_doubt = rules.in_doubt or "tell"
    spec = checked_spec(
        name,
        effect=effect,
        parallel=rules.parallel,
        in_doubt="tell" if effect == "read" and rules.effect is None else in_doubt,
        timeout_s=limits.TOOL_TIMEOUT_S if rules.timeout_s is None else rules.timeout_s,
        heartbeat_timeout_s=(
            limits.HEARTBEAT_TIMEOUT_S if rules.heartbeat_timeout_s is None else rules.heartbeat_timeout_s
        ),
        retry=rules.retry,
    )
    return spec.model_copy(update={"schema_digest": schema})


def checked_spec(
    name: str,
    *,
    effect: EffectClass,
    parallel: bool | None,
    in_doubt: InDoubt,
    timeout_s: float,
    heartbeat_timeout_s: float,
    retry: RetryPolicy | None,
) -> ToolSpec:
    """Return a tool's spec; raises `ConfigurationError` naming the tool, the field and the fix."""
    where = f"tool {name!r}"
    if name == ASK_PARTICIPANT:
        raise ConfigurationError(f"{where}, name", "this name is reserved for the harness; choose another with name=…")
    if effect not in get_args(EffectClass):
        raise ConfigurationError(f"{where}, effect", f"{effect!r} is not one of {', '.join(get_args(EffectClass))}")
    if in_doubt not in get_args(InDoubt):
        raise ConfigurationError(f"{where}, in_doubt", f"{in_doubt!r} is not one of {', '.join(get_args(InDoubt))}")
    if effect == "read" and in_doubt != "tell":
        raise ConfigurationError(f"{where}, in_doubt", "a tool that only reads leaves nothing in doubt; leave it out")
    for field, seconds in (("timeout_s", timeout_s), ("heartbeat_timeout_s", heartbeat_timeout_s)):
        if not 0 < seconds < float("inf"):
            raise ConfigurationError(f"{where}, {field}", f"{seconds} is not a time; give seconds greater than 0")
    return ToolSpec(
        name=name,
        effect=effect,
        parallel=effect == "read" if parallel is None else parallel,
        in_doubt=in_doubt,
        timeout_s=timeout_s,
        heartbeat_timeout_s=heartbeat_timeout_s,
        **({} if retry is None else {"retry": retry}),
    )


def settling_s(name: str, settle_s: float | None, timeout_s: float) -> float:
    """Return how long to wait before a tool's check; raises `ConfigurationError` where that leaves it no time."""
    settle_s_max = timeout_s * _SETTLE_SHARE_MAX
    settles_s = min(limits.SETTLE_S, settle_s_max) if settle_s is None else settle_s
    if not 0 <= settles_s <= settle_s_max:
        raise ConfigurationError(
            f"tool {name!r}, settle_s",
            f"{settle_s} is not within 0 and half of timeout_s, {settle_s_max:g}; give less, or a longer timeout_s",
        )
    return settles_s
