"""`[[approvals]]` in an agent's file: the very rules of Python, refused at their own place."""

import pytest

from perdure import ApprovalRule, tool
from perdure.app.agent_file import AgentFileError
from perdure.app.examining import examine
from perdure.core.tool_rules import ToolRules
from perdure.tools.ruled import ruled
from tests.app.filing import Folder

HEAD = 'id = "shop"\nmodel = "openai:gpt-5"\ntools = ["TOOLS:get_order", "TOOLS:refund"]\n'


def test_rules_stand_in_their_order(folder: Folder) -> None:
    loaded = folder.load(
        f"""{HEAD}asks_expire_in_s = 3_600

[[approvals]]
then = "deny"
tool = "refund"
when = "order_id == 'A-9'"
reason = "That one was paid back."

[[approvals]]
then = "ask"
effect = "once"
expires_in_s = 60
"""
    )
    assert list(loaded.approvals) == [
        ApprovalRule(then="deny", tool="refund", when="order_id == 'A-9'", reason="That one was paid back."),
        ApprovalRule(then="ask", effect="once", expires_in_s=60),
    ]
    assert loaded.asks_expire_in_s == 3_600


@pytest.mark.parametrize(
    ("rule", "key", "problem"),
    [
        ('then = "maybe"', "approvals[1].then", "ask"),
        ('tool = "refund"', "approvals[1].then", "missing"),
        ('then = "ask"\nwhen = "amount >"', "approvals[1].when", "is no expression"),
        ('then = "ask"\nwhen = "len(order_id) > 3"', "approvals[1].when", "is not allowed"),
        ('then = "ask"\ntool = "refund"\nwhen = "amount > 3"', "", "'amount' is no argument of it"),
        ('then = "ask"\nexpires_in_s = 0', "approvals[1].expires_in_s", "1"),
    ],
)
def test_what_cannot_work_is_refused_at_its_place(folder: Folder, rule: str, key: str, problem: str) -> None:
    with pytest.raises(AgentFileError) as refused:
        folder.load(f"{HEAD}\n[[approvals]]\n{rule}\n")
    (found,) = refused.value.problems
    assert found.key == key
    assert problem in found.text


async def test_a_rule_for_no_tool_is_found(folder: Folder) -> None:
    loaded = folder.load(f'{HEAD}\n[[approvals]]\nthen = "deny"\ntool = "refnud"\n')
    (found,) = [each for each in (await examine(loaded)).problems if "approvals" in each.place]
    assert (found.path, found.text) == (
        ("approvals", 0, "tool"),
        "'refnud' is the name of no tool (get_order, refund); did you mean 'refund'? Else correct it, or take the rule "
        "out",
    )


async def test_a_rule_that_never_decides_is_found(folder: Folder) -> None:
    loaded = folder.load(f'{HEAD}\n[[approvals]]\nthen = "allow"\n\n[[approvals]]\nthen = "deny"\ntool = "refund"\n')
    (found,) = [each for each in (await examine(loaded)).problems if "approvals" in each.place]
    assert found.path == ("approvals", 1)
    assert found.text.startswith("decides about no call")


async def test_the_rules_of_each_tool_are_told(folder: Folder) -> None:
    loaded = folder.load(f'{HEAD}\n[[approvals]]\nthen = "ask"\ntool = "refund"\n\n[[approvals]]\nthen = "deny"\n')
    told = {each.tool.spec.name: [rule.then for rule in each.approvals] for each in (await examine(loaded)).tools}
    assert told == {"get_order": ["deny"], "refund": ["ask"]}


def test_rules_over_a_tool_leave_it_its_own_condition() -> None:
    @tool(ask="amount > 100")
    def pay(amount: float) -> str:
        """Pay."""
        return f"{amount}"

    assert ruled(pay, ToolRules(timeout_s=10)).spec.ask == "amount > 100"
