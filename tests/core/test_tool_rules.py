"""What a source claims of a tool, under what its operator says."""

import pytest

from perdure.core import limits
from perdure.core.agent import RetryPolicy
from perdure.core.errors import ConfigurationError
from perdure.core.tool_rules import (
    ToolRules,
    is_offered,
    is_pattern,
    ruled_spec,
    rules_for,
    schema_digest,
    settling_s,
)

RULES = {
    "*": ToolRules(timeout_s=1),
    "get_*": ToolRules(timeout_s=2),
    "get_order": ToolRules(timeout_s=3),
    "get[1]": ToolRules(timeout_s=4),
}


@pytest.mark.parametrize(("tool", "timeout_s"), [("get_order", 3), ("get_item", 1), ("refund", 1), ("get[1]", 4)])
def test_a_tools_own_name_counts_first_and_then_the_first_pattern_alone(tool: str, timeout_s: float) -> None:
    assert rules_for(tool, RULES).timeout_s == timeout_s


def test_without_rules_nothing_is_said() -> None:
    assert rules_for("refund", {"get_*": ToolRules(timeout_s=2)}) == ToolRules()


def test_names_and_patterns_choose_what_is_offered() -> None:
    assert is_offered("get_order", ("refund", "get_*"))
    assert is_offered("a[b]", ("a[b]",)), "a name is a name, whatever signs are in it"
    assert not is_offered("Get_order", ("get_*",))
    assert not is_offered("get_order", ())
    assert (is_pattern("get_*"), is_pattern("get_order")) == (True, False)


def test_what_nobody_says_is_the_default_and_what_the_operator_says_wins() -> None:
    plain = ruled_spec("shop.refund", "once", ToolRules(), "d")
    assert (plain.effect, plain.parallel, plain.in_doubt, plain.schema_digest) == ("once", False, "tell", "d")
    assert (plain.timeout_s, plain.heartbeat_timeout_s) == (limits.TOOL_TIMEOUT_S, limits.HEARTBEAT_TIMEOUT_S)
    retry = RetryPolicy(attempts_max=9)
    said = ToolRules(
        effect="idempotent", parallel=True, in_doubt="fail", timeout_s=5, heartbeat_timeout_s=4, retry=retry
    )
    ruled = ruled_spec("shop.refund", "read", said)
    assert (ruled.effect, ruled.parallel, ruled.in_doubt) == ("idempotent", True, "fail")
    assert (ruled.timeout_s, ruled.heartbeat_timeout_s, ruled.retry) == (5, 4, retry)
    assert ruled_spec("shop.get", "read", ToolRules()).parallel, "reading may run beside other calls"


def test_what_rules_say_of_doubts_is_nothing_to_a_tool_that_only_reads() -> None:
    assert ruled_spec("shop.get", "read", ToolRules(in_doubt="ask")).in_doubt == "tell"
    with pytest.raises(ConfigurationError, match="a tool that only reads leaves nothing in doubt"):
        ruled_spec("shop.get", "once", ToolRules(effect="read", in_doubt="ask"))


def test_settling_leaves_the_check_its_time() -> None:
    assert settling_s("t", None, 300) == limits.SETTLE_S
    assert settling_s("t", None, 4) == 2
    with pytest.raises(ConfigurationError, match="tool 't', settle_s: 3 is not within 0 and half of timeout_s, 2"):
        settling_s("t", 3, 4)


def test_a_digest_covers_what_calls_are_held_to() -> None:
    first = schema_digest({"type": "object", "properties": {"a": {"type": "string"}}}, "read")
    assert first == schema_digest({"properties": {"a": {"type": "string"}}, "type": "object"}, "read")
    assert first != schema_digest({"type": "object", "properties": {"a": {"type": "number"}}}, "read")
    assert first != schema_digest({"type": "object", "properties": {"a": {"type": "string"}}}, "once")
