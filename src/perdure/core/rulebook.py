"""The rules of an agent: which calls may begin, which may not, and which wait for a person.

Rules stand in order, those of the agent before a tool's own; the first one that fits decides, and a call that none
fits is allowed. They are evaluated where the arguments are, by the worker that takes a model's reply in, and what
they come to for each call is recorded with the answer. So a replay never evaluates anything (P11), and a call is held
to the rules that were in force when the model asked for it, whichever worker runs it, and however much later. Whoever
tightens the rules reaches every call that is asked for from then on, in running tasks too.

A condition that cannot be told asks: that is the one answer which is safe for a rule that would allow and for one that
would deny. A rule for many tools is not for those that do not have the arguments that its condition names.
"""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field, JsonValue

from perdure.core import asking_limits
from perdure.core.agent import EffectClass, ToolSpec
from perdure.core.approvals import Ruling, bounded_reason
from perdure.core.conditions import CannotTell, Condition
from perdure.core.content import Frozen
from perdure.core.errors import ConfigurationError

Then = Literal["allow", "deny", "ask"]


class ApprovalRule(Frozen):
    """One rule of an agent: which calls it is for, and what becomes of them.

    Args:
        then: `allow` them, `deny` them, or `ask` a person.
        tool: A tool's name, or a pattern (`*`, `?`, `[…]`) for several.
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
        self._tools = {spec.name: spec for spec in tools}
        self._arguments = known = {name: frozenset(each) for name, each in (arguments or {}).items()}
        self._rules: list[tuple[ApprovalRule, Condition | None]] = []
        for place, rule in enumerate(rules):
            condition = _parsed(rule, f"Agent.approvals[{place}].when")
            if condition is not None and rule.tool in known:
                condition.refuse_unknown(known[rule.tool])
            self._rules.append((rule, condition))
        for spec in tools:
            if spec.ask:
                rule = own_rule(spec.name, spec.ask)
                self._rules.append((rule, _parsed(rule, f"tool {spec.name!r}, ask")))

    def about(self, tool: str) -> tuple[ApprovalRule, ...]:
        """Return the rules that may decide about calls of a tool, in order: none after one that always does."""
        found: list[ApprovalRule] = []
        for rule, condition in self._rules:
            if self._is_for(rule, condition, self._tools[tool], ()):
                found.append(rule)
                if condition is None:
                    break
        return tuple(found)

    def _is_for(self, rule: ApprovalRule, condition: Condition | None, spec: ToolSpec, given: Collection[str]) -> bool:
        named = rule.tool == spec.name or fnmatchcase(spec.name, rule.tool)
        if not named or rule.effect not in {None, spec.effect}:
            return False
        known = self._arguments.get(spec.name)
        return condition is None or known is None or not condition.names - known - set(given)

    def ruling(
        self, tool: str, arguments: dict[str, JsonValue], defaults: Mapping[str, JsonValue] | None = None
    ) -> Ruling | None:
        """Return what becomes of a call: None where it may begin. `defaults` stand in for what was left out."""
        spec = self._tools.get(tool)
        if spec is None:
            return None
        given = {**(defaults or {}), **arguments}
        for rule, condition in self._rules:
            if not self._is_for(rule, condition, spec, given):
                continue
            try:
                fits = condition is None or condition.holds(given)
            except CannotTell as error:
                return Ruling(
                    then="ask", rule=str(rule), reason=bounded_reason(str(error)), expires_in_s=rule.expires_in_s
                )
            if not fits:
                continue
            if rule.then == "allow":
                return None
            return Ruling(
                then=rule.then, rule=str(rule), reason=bounded_reason(rule.reason), expires_in_s=rule.expires_in_s
            )
        return None


def own_rule(tool: str, ask: str) -> ApprovalRule:
    """Return the rule that a tool's own `ask` stands for."""
    return ApprovalRule(then="ask", tool=tool, when="" if ask == "True" else ask)


def _parsed(rule: ApprovalRule, field: str) -> Condition | None:
    return Condition(rule.when, field) if rule.when.strip() else None
