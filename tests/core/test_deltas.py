"""Drafts: never garbled, whatever is lost, comes twice or comes late."""

import random

import pytest

from perdure.core import limits
from perdure.core.deltas import Delta, Draft, joined, packed, pieces, unpacked


def delta(at: int, text: str, attempt: int = 1, turn: int = 1) -> Delta:
    return Delta("t", turn, attempt, at, text)


def test_pieces_make_the_draft() -> None:
    draft = joined(joined(None, delta(0, "one ")), delta(4, "two"))
    assert draft == Draft(1, 1, "one two")


def test_a_piece_again_changes_nothing() -> None:
    draft = Draft(1, 1, "one two")
    assert joined(draft, delta(0, "one ")) == draft
    assert joined(draft, delta(4, "two")) == draft


def test_a_hole_drops_the_draft() -> None:
    assert joined(Draft(1, 1, "one "), delta(8, "three")) is None
    assert joined(None, delta(4, "two")) is None


def test_a_later_attempt_replaces_and_an_earlier_one_is_not_heard() -> None:
    again = joined(Draft(1, 1, "one two"), delta(0, "eins", attempt=2))
    assert again == Draft(1, 2, "eins")
    assert joined(again, delta(7, " three")) == again
    assert joined(again, delta(0, "next", turn=2)) == Draft(2, 1, "next")


def test_whatever_is_lost_or_repeated_what_is_shown_is_a_beginning() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = "".join(chance.choices("ab äß\n", k=300))
    for _ in range(200):
        draft, at, sent = None, 0, []
        while at < len(whole):
            size = chance.randint(1, 30)
            sent.append(delta(at, whole[at : at + size]))
            at += size
        for each in sent:
            for _ in range(chance.choice((0, 1, 1, 1, 2))):
                draft = joined(draft, each)
                assert draft is None or whole.startswith(draft.text)


def test_deltas_travel_in_bounded_pieces() -> None:
    draft = Draft(3, 2, "\x01ä😀" * 1000)
    found = list(pieces("t-1", draft, 0))
    assert all(len(packed([each])) <= limits.DATAGRAM_BYTES_MAX for each in found)
    assert unpacked(packed(found)) == tuple(found)
    heard: Draft | None = None
    for each in found:
        heard = joined(heard, each)
    assert heard == draft


@pytest.mark.parametrize("data", [b"", b"w", b"\xff", b"{}", b"[1]", b'[["t",1,1,0]]', b'[["t",1,1,"0","x"]]'])
def test_what_another_release_says_is_not_understood_and_breaks_nothing(data: bytes) -> None:
    assert unpacked(data) == ()
