"""A model's calls as a worker looks at them, and the settings that an agent is refused with."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, cast
from uuid import UUID

import pytest
from pydantic import StringConstraints

from perdure import Agent, ApprovalRule, tool
from perdure.app.call_examining import Examiner, refuse_idle_rules, rules_of
from perdure.core.agent import ToolSpec
from perdure.core.content import ToolCall
from perdure.core.errors import ConfigurationError
from perdure.core.ports import ToolPort, ToolSchema
from perdure.core.questions import Examined
from perdure.testing import say, scripted
from perdure.tools.environment import Environment
from perdure.tools.http.operations import Operation, Parameter
from perdure.tools.http.tool import HttpTool, Service
from perdure.tools.json_arguments import JsonArguments
from perdure.tools.mcp.mcp_tool import McpTool


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
    assert examined("none", {}) == Examined(unknown=True)
    question = examined("ask_participant", {"question": "Which?"})
    assert question.question == "Which?"
    assert question.manner is not None
    assert question.manner.expires_in_s == 60
    assert examined("ask_participant", {"question": "Which?"}, asks=False) == Examined(unknown=True)


@tool(effect="once", ask="account == '9f1c2c1e-0000-4000-8000-000000000001' or action == 'delete'")
def act(account: UUID, action: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]) -> str:
    """Act."""
    return f"{account} {action}"


def looked_at(given: ToolPort, arguments: dict[str, Any], *rules: ApprovalRule) -> str:
    look = Examiner({given.spec.name: given}, rules_of(rules, [given]), True, None)
    found = look(ToolCall(call_id="c", tool=given.spec.name, arguments=arguments))
    assert found.problem is None
    return "allow" if found.ruling is None else found.ruling.then


@pytest.mark.parametrize(
    ("account", "action", "ruling"),
    [
        ("9f1c2c1e-0000-4000-8000-000000000001", "look", "ask"),
        ("9F1C2C1E-0000-4000-8000-000000000001", "look", "ask"),
        ("9f1c2c1e-0000-4000-8000-000000000002", " DELETE", "ask"),
        ("9f1c2c1e-0000-4000-8000-000000000002", "look", "allow"),
    ],
)
def test_a_call_is_held_to_the_rules_by_what_its_function_gets(account: str, action: str, ruling: str) -> None:
    assert looked_at(act, {"account": account, "action": action}) == ruling


def test_a_condition_on_a_number_sees_one_whatever_its_type() -> None:
    @tool(ask="amount > 100")
    def pay(amount: Decimal) -> str:
        """Pay."""
        return f"{amount}"

    assert looked_at(pay, {"amount": 50}) == "allow"
    assert looked_at(pay, {"amount": 500}) == "ask"
    assert looked_at(pay, {"amount": "50"}) == "ask"  # a text: what is written cannot be told


def operation(name: str, **properties: Any) -> HttpTool:
    """Return an operation of a service, whose model may add what its schema does not forbid."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    made = Operation(
        name=name,
        method="delete",
        path="/accounts/{id}",
        server="",
        description="",
        schema=schema,
        parameters=(Parameter("id", "id", "path", "simple", False),),
        body=None,
        takes_key=False,
    )
    service = Service(cast(Any, None), "https://shop.example", {}, Environment({}))
    return HttpTool(ToolSpec(name=f"shop.{name}"), made, service, None, 0)


def test_what_a_service_gets_alike_is_not_told_apart() -> None:
    deny = ApprovalRule(then="deny", tool="shop.*", when="id in ['1', '42']")
    close = operation("close", id={"type": ["string", "integer"]})
    assert looked_at(close, {"id": "42"}, deny) == "deny"
    assert looked_at(close, {"id": 42}, deny) == "ask"
    assert looked_at(close, {"id": "43"}, deny) == "allow"


def served(name: str, **properties: Any) -> McpTool:
    """Return a server's tool."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    called = f"shop.{name}"
    return McpTool(
        cast(Any, None),
        Environment({}),
        name,
        spec=ToolSpec(name=called),
        schema=ToolSchema(name=called, description="", parameters=schema),
        arguments=JsonArguments(called, schema),
        failed=None,
        checking=None,
        settle_s=0,
    )


@pytest.mark.parametrize("made", [operation, served])
@pytest.mark.parametrize("dry_run", ["dry_run == True", "options['dry_run'] == True"])
def test_nothing_is_allowed_for_what_a_tool_does_not_declare(dry_run: str, made: Callable[..., ToolPort]) -> None:
    rules = ApprovalRule(then="allow", tool="shop.*", when=dry_run), ApprovalRule(then="deny")
    text, flag = {"type": "string"}, {"type": "boolean"}
    options = {"type": "object", "properties": {"to": text}}
    given: dict[str, Any] = {"id": "1", "dry_run": True, "options": {"to": "B", "dry_run": True}}
    assert looked_at(made("close", id=text, options=options), given, *rules) in {"ask", "deny"}
    knows = {"type": "object", "properties": {"to": text, "dry_run": flag}}
    assert looked_at(made("move", id=text, options=knows, dry_run=flag), given, *rules) == "allow"


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


@pytest.mark.parametrize(
    ("then", "pattern", "names", "problem"),
    [
        (
            "deny",
            "delete_*",
            ["orders.delete_order"],
            "fits no tool (orders.delete_order); did you mean 'orders.delete_*'",
        ),
        (
            "ask",
            "delete_*",
            ["a.delete_x", "b.delete_y"],
            "fits no tool (a.delete_x, b.delete_y); did you mean '*.delete_*'",
        ),
        (
            "deny",
            "delete_order",
            ["orders.delete_order"],
            "is the name of no tool (orders.delete_order); did you mean 'orders.d",
        ),
        (
            "allow",
            "delete_order",
            ["delete_orders"],
            "is the name of no tool (delete_orders); did you mean 'delete_orders'",
        ),
        ("deny", "Delete_*", ["delete_order"], "fits no tool (delete_order); did you mean 'delete_*'"),
        ("deny", "REFUND", ["refund"], "is the name of no tool (refund); did you mean 'refund'"),
        ("ask", "x?", ["refund"], "fits no tool (refund); correct it, or take the rule out"),
        ("ask", "x*", [], "fits no tool (there are none); correct it"),
        ("ask", "x*", [f"t{n}" for n in range(99)], ", …); correct it"),
    ],
)
def test_a_rule_whose_pattern_fits_no_tool_keeps_a_worker_from_starting(
    then: Any, pattern: str, names: list[str], problem: str
) -> None:
    """What it would hold back runs: most likely the pattern lacks the name of the tools' source."""
    with pytest.raises(ConfigurationError) as refused:
        refuse_idle_rules([ApprovalRule(then="ask"), ApprovalRule(then=then, tool=pattern)], names)
    assert refused.value.field == "Agent.approvals[1].tool"
    assert problem in refused.value.problem


def test_a_pattern_that_holds_nothing_back_may_fit_nothing() -> None:
    refuse_idle_rules([ApprovalRule(then="allow", tool="x*"), ApprovalRule(then="ask")], [])
    refuse_idle_rules([ApprovalRule(then="deny", tool="orders.*")], ["orders.cancel"])
