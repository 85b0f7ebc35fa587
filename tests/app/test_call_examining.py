"""A model's calls as a worker looks at them, and the settings that an agent is refused with."""

from typing import Any, cast

import pytest

from perdure import Agent, ApprovalRule, tool
from perdure.app.call_examining import Examiner, rules_of
from perdure.core.content import ToolCall
from perdure.core.errors import ConfigurationError
from perdure.core.questions import Examined
from perdure.testing import say, scripted


@tool(ask="amount > 100")
def refund(amount: float = 500.0) -> str:
    """Refund."""
    return f"{amount}"


def examined(name: str, arguments: dict[str, Any] | None, *rules: ApprovalRule, asks: bool = True) -> Examined:
    look = Examiner({"refund": refund}, rules_of(rules, [refund]), asks, 60)
    return look(ToolCall(call_id="c", tool=name, arguments=arguments, malformed=None if arguments is not None else "{"))


def test_a_call_is_held_to_its_schema_before_the_rules() -> None:
    wrong = examined("refund", {"amount": "much"})
    assert wrong.problem is not None
    assert wrong.ruling is None
    assert examined("refund", None).problem == "The arguments are not a JSON object: {"


def test_what_is_left_out_is_judged_by_its_default() -> None:
    assert examined("refund", {"amount": 50}) == Examined()
    left_out = examined("refund", {}).ruling
    assert left_out is not None
    assert left_out.rule == "ask refund when amount > 100"


def test_an_unknown_tool_and_a_question_are_told_apart() -> None:
    assert examined("none", {}) == Examined()
    question = examined("ask_participant", {"question": "Which?"})
    assert question.question == "Which?"
    assert question.manner is not None
    assert question.manner.expires_in_s == 60
    assert examined("ask_participant", {"question": "Which?"}, asks=False) == Examined()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"asks_expire_in_s": 0}, "Agent.asks_expire_in_s: 0 is not 1 to"),
        ({"approvals": ["ask"]}, "Agent.approvals: 'ask' is no rule"),
        ({"approvals": [ApprovalRule(then="ask", when="1 +")]}, r"Agent.approvals\[0\].when: .*is no expression"),
        (
            {"approvals": [ApprovalRule(then="ask", tool="refund", when="amout > 1")]},
            r"Agent.approvals\[0\].when: .*'amout' is no argument of it; its arguments: amount",
        ),
        ({"approvals": [ApprovalRule(then="ask")] * 201}, "Agent.approvals: are 201 rules"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Agent("shop", model="openai:gpt-5", tools=[refund], **settings)


def test_a_rule_for_a_tool_that_is_not_there_keeps_a_worker_from_starting() -> None:
    """Its call would run unasked: the name is mistyped, or a source of tools has renamed the tool since."""
    rule = ApprovalRule(then="ask", tool="refunds")
    agent = Agent("shop", model=scripted(say("yes")), tools=[refund], approvals=[rule])
    with pytest.raises(ConfigurationError, match=r"approvals\[0\]\.tool: 'refunds' is the name of no tool \(refund\)"):
        agent.live(cast(Any, None), "worker", lambda: 0)
    pattern = Agent("shop", model=scripted(say("yes")), tools=[refund], approvals=[ApprovalRule(then="ask", tool="x*")])
    assert pattern.live(cast(Any, None), "worker", lambda: 0).agent_id == "shop"
