"""The effect policy over every combination, against the sentences of the promises."""

from itertools import combinations, product

import pytest

from perdure.core.agent import EffectClass
from perdure.core.effects import EffectRequest, LedgerView, effect_key, judge, request_digest
from perdure.core.errors import Fenced, KeyReused

EFFECTS: tuple[EffectClass, ...] = ("read", "idempotent", "once")
BEGUN = [attempts for n in range(4) for attempts in combinations((1, 2, 3), n)]


def request(effect: EffectClass, attempt: int, *, resolve_only: bool = False, digest: str = "d") -> EffectRequest:
    return EffectRequest(
        key="t/1/0",
        task_id="t",
        run=2,
        turn=1,
        index=0,
        attempt=attempt,
        tool="refund",
        effect=effect,
        request_digest=digest,
        worker="w",
        resolve_only=resolve_only,
    )


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("resolve_only", [False, True])
@pytest.mark.parametrize("outcome", [None, "open", "done", "closed"])
def test_every_combination(effect: EffectClass, resolve_only: bool, outcome: str | None) -> None:
    for attempt, begun, fence in product((1, 2, 3), BEGUN, (0, 1, 2, 3)):
        view = LedgerView.model_validate(
            {"request_digest": "d", "effect": effect, "outcome": outcome, "begun_attempts": begun, "fence": fence}
        )
        try:
            verdict: str = judge(request(effect, attempt, resolve_only=resolve_only), view)
        except Fenced:
            verdict = "fenced"
        about = f"{effect} attempt {attempt}, begun {begun}, {outcome}, fence {fence}, resolving {resolve_only}"
        assert verdict == expected(effect, attempt, begun, outcome, fence, resolve_only), about


def expected(
    effect: str, attempt: int, begun: tuple[int, ...], outcome: str | None, fence: int, resolve_only: bool
) -> str:
    """The promises as a list of cases; run 2 asks."""
    if outcome == "done":
        return "done"  # P3: whoever asks gets the result that stands
    if outcome == "closed":
        return "not_begun" if resolve_only and not begun else "closed"  # P3: never again under this key
    if resolve_only:
        return "in_doubt" if begun else "not_begun"  # P4: begins nothing
    if fence >= 2:
        return "fenced"  # P9
    if any(other > attempt for other in begun):
        return "fenced"  # P3: a later attempt is the one that counts
    if effect == "once" and begun:
        return "in_doubt"  # P3
    return "begin"


@pytest.mark.parametrize("outcome", [None, "open", "done", "closed"])
def test_p3_another_request_under_the_same_key_is_refused(outcome: str | None) -> None:
    view = LedgerView.model_validate({"request_digest": "other", "outcome": outcome})
    with pytest.raises(KeyReused, match="P3: t/1/0 was begun with another tool or other arguments"):
        judge(request("once", 1), view)


def test_messages_name_the_promise() -> None:
    with pytest.raises(Fenced, match="P9: run 2 of task t was stopped before t/1/0 began"):
        judge(request("once", 1), LedgerView(fence=2))
    with pytest.raises(Fenced, match="P3: attempt 3 of t/1/0 began before attempt 2"):
        judge(request("read", 2), LedgerView(begun_attempts=(3,)))


def test_p3_keys_differ_in_every_part() -> None:
    parts = list(product(("a", "b"), range(1, 13), range(12), range(1, 13)))
    assert len({effect_key(*part) for part in parts}) == len(parts)
    assert effect_key("t", 3, 1, 1) == "t/3/1"
    assert effect_key("t", 3, 1, 2) == "t/3/1/2"


def test_request_digests_cover_tool_and_arguments() -> None:
    digests = {
        request_digest("refund", {"a": 1}),
        request_digest("refund", {"a": 2}),
        request_digest("ship", {"a": 1}),
    }
    assert len(digests) == 3
    assert request_digest("refund", {"a": 1, "b": 2}) == request_digest("refund", {"b": 2, "a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        request_digest("refund", {"a": float("nan")})
