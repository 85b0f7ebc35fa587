"""Names and ids for providers."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.models.names import CallIds, sent_name

texts = st.text(max_size=100)


@settings(deadline=None)
@given(texts)
def test_a_sent_name_suits_every_provider_and_stays(tool: str) -> None:
    sent = sent_name(tool)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", sent)
    assert sent_name(sent) == sent


@settings(deadline=None)
@given(st.lists(texts, unique=True, max_size=20))
def test_two_names_never_meet(tools: list[str]) -> None:
    assert len({sent_name(tool) for tool in tools}) == len(tools)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["c", "c_2", "c.1", "", "x" * 41, "x" * 90]), st.booleans()), max_size=30))
def test_call_ids_are_unique_in_a_request(given_ids: list[tuple[str, bool]]) -> None:
    ids = CallIds()
    sent = [ids.give(call_id, foreign=foreign) for call_id, foreign in given_ids]
    assert len(set(sent)) == len(sent)
    for one, (_, foreign) in zip(sent, given_ids, strict=True):
        assert not foreign or re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one)
