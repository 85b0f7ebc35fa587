"""The rules of an agent: which calls may begin, which may not, and which wait for a person.

Rules stand in order, those of the agent before a tool's own; the first one that fits decides, and a call that none
fits is allowed. They are evaluated where the arguments are, by the worker that takes a model's reply in, and what
they come to for each call is recorded with the answer. So a replay never evaluates anything (P11), and a call is held
to the rules that were in force when the model asked for it, whichever worker runs it, and however much later. Whoever
tightens the rules reaches every call that is asked for from then on, in running tasks too.

A condition that cannot be told asks: that is the one answer which is safe for a rule that would allow and for one that
would deny. A rule for many tools is not for those of which its condition cannot be told because they lack the arguments
that it names; where the rest of the condition decides, it is. A model may add arguments that a tool does not declare:
they can make a rule deny or ask, and never make one allow.

A tool may read its arguments as something else than stands there: "DELETE " as "delete". Rules are for what is written
and for what the tool gets, and the stricter of the two rulings counts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from pydantic import Field, JsonValue

from perdure.core import asking_limits
from perdure.core.agent import EffectClass, ToolSpec
from perdure.core.approvals import Ruling, bounded_reason
from perdure.core.conditions import CannotTell, Condition
from perdure.core.content import Frozen
from perdure.core.errors import ConfigurationError
from perdure.core.truths import Outcomes, alike

Then = Literal["allow", "deny", "ask"]


class ApprovalRule(Frozen):
    """One rule of an agent: which calls it is for, and what becomes of them.

    Args:
        then: `allow` them, `deny` them, or `ask` a person.
        tool: A tool's name, or a pattern (`*`, `?`, `[…]`) for several. Those of a source bear its name: `orders.*`.
        effect: For tools of this effect class only.
        when: A condition over the arguments: `amount > 100`. Without one the rule is for every call.
        reason: What the model is told of a call that is denied, or a person of one that they are asked about.
        expires_in_s: After so many seconds without an answer a call that asks counts as declined.
    """

    then: Then
    tool: str = "*"
    effect: EffectClass | None = None
    when: str = ""
    reason: str = ""
    expires_in_s: float | None = Field(
        default=None, ge=asking_limits.EXPIRES_S_MIN, le=asking_limits.EXPIRES_S_MAX, allow_inf_nan=False
    )

    def __str__(self) -> str:
        """Return the rule as a person reads it."""
        which = self.tool if self.effect is None else f"{self.tool} ({self.effect})"
        return f"{self.then} {which}" + (f" when {self.when}" if self.when else "")


class Rulebook:
    """The rules of one agent, parsed.

    Args:
        rules: The agent's, in order.
        tools: Its tools: each one's own condition (`ToolSpec.ask`) comes after the rules.
        arguments: The names of each tool's arguments, where they are known, so that a mistyped one is refused.

    Raises:
        ConfigurationError: A rule cannot work; names it and the fix.
    """

    def __init__(
        self,
        rules: Sequence[ApprovalRule],
        tools: Sequence[ToolSpec],
        arguments: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        if len(rules) > asking_limits.RULES_MAX:
            raise ConfigurationError(
                "Agent.approvals", f"are {len(rules)} rules, at most {asking_limits.RULES_MAX}; use patterns"
            )
        known = {name: frozenset(each) for name, each in (arguments or {}).items()}
        parsed: list[tuple[ApprovalRule, Condition | None]] = []
        for place, rule in enumerate(rules):
            condition = _parsed(rule, f"Agent.approvals[{place}].when")
            if condition is not None and rule.tool in known:
                condition.refuse_unknown(known[rule.tool])
            parsed.append((rule, condition))
        for spec in tools:
            if spec.ask:
                rule = own_rule(spec.name, spec.ask)
                parsed.append((rule, _parsed(rule, f"tool {spec.name!r}, ask")))
        self._of = {
            spec.name: tuple(
                _for_tool(rule, condition, spec.name, known.get(spec.name))
                for rule, condition in parsed
                if _is_for(rule, spec)
            )
            for spec in tools
        }

    def about(self, tool: str) -> tuple[ApprovalRule, ...]:
        """Return the rules that may decide about calls of a tool, in order: none after one that always does.

        Calls with the arguments that the tool declares are meant; with further ones, more rules may deny or ask.
        """
        found: list[ApprovalRule] = []
        for held in self._of[tool]:
            if True in held.may:
                found.append(held.rule)
            if held.may == _ALWAYS:
                break
        return tuple(found)

    def looks_at_arguments(self, tool: str) -> bool:
        """Whether any rule about a tool depends on the arguments of the call."""
        return any(held.condition is not None for held in self._of.get(tool, ()))

    def ruling(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        defaults: Mapping[str, JsonValue] | None = None,
        read: Mapping[str, object] | None = None,
    ) -> Ruling | None:
        """Return what becomes of a call: None where it may begin.

        Args:
            tool: Its name; one that is unknown here has no ruling, and whoever asks must not let it begin.
            arguments: As the model wrote them.
            defaults: What stands in for what was left out.
            read: The arguments as the tool will get them, where it reads them as something else.
        """
        rules, standing = self._of.get(tool, ()), defaults or {}
        written = _first(rules, {**standing, **arguments})
        if read is None or alike(read, arguments):
            return written
        return max(written, _first(rules, {**standing, **read}), key=_strictness)


_ALWAYS: Final[Outcomes] = frozenset({True})


@dataclass(frozen=True)
class _Held:
    """A rule as it holds for one tool.

    `foreign` are the names in its condition that the tool does not declare, `may` what the condition can come to for
    what it does declare. `declared` says whether anybody says what that is.
    """

    rule: ApprovalRule
    condition: Condition | None
    foreign: frozenset[str]
    may: Outcomes
    declared: bool

    def fits(self, given: Mapping[str, object]) -> bool:
        """Return whether it fits a call; raises `CannotTell`."""
        if self.condition is None:
            return True
        if self.rule.then != "allow":
            return self.condition.holds(given, self.foreign - given.keys())
        if not self.declared and self.condition.names and True in self.may:
            raise CannotTell(f"{self.condition.text!r} cannot be told: the tool does not say which arguments it has")
        return self.condition.holds(given, self.foreign)


def _for_tool(rule: ApprovalRule, condition: Condition | None, tool: str, known: frozenset[str] | None) -> _Held:
    """Return a rule as it holds for a tool. One that names this tool alone says itself which arguments there are."""
    if condition is None:
        return _Held(rule, None, frozenset(), _ALWAYS, declared=True)
    foreign = frozenset[str]() if known is None else condition.names - known
    return _Held(rule, condition, foreign, condition.outcomes(foreign), declared=known is not None or rule.tool == tool)


def _first(rules: Sequence[_Held], given: Mapping[str, object]) -> Ruling | None:
    """Return what the first rule that fits comes to."""
    for held in rules:
        rule = held.rule
        try:
            fits = held.fits(given)
        except CannotTell as error:
            return Ruling(then="ask", rule=str(rule), reason=bounded_reason(str(error)), expires_in_s=rule.expires_in_s)
        if not fits:
            continue
        if rule.then == "allow":
            return None
        return Ruling(
            then=rule.then, rule=str(rule), reason=bounded_reason(rule.reason), expires_in_s=rule.expires_in_s
        )
    return None


def _strictness(ruling: Ruling | None) -> int:
    return 0 if ruling is None else ("ask", "deny").index(ruling.then) + 1


def _is_for(rule: ApprovalRule, spec: ToolSpec) -> bool:
    """Whether a rule is for a tool, by its name and its effect class."""
    return (rule.tool == spec.name or fnmatchcase(spec.name, rule.tool)) and rule.effect in {None, spec.effect}


def own_rule(tool: str, ask: str) -> ApprovalRule:
    """Return the rule that a tool's own `ask` stands for."""
    return ApprovalRule(then="ask", tool=tool, when="" if ask == "True" else ask)


def _parsed(rule: ApprovalRule, field: str) -> Condition | None:
    return Condition(rule.when, field) if rule.when.strip() else None
