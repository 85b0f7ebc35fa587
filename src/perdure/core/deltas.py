"""A reply's text while it is made: beside the log, with none of its promises.

A *draft* is what is known so far of the text that one attempt at one turn's model call writes. It travels in *deltas*,
each saying at which character of the draft its text stands. So a delta that comes twice changes nothing, one that is
lost is noticed (the draft is dropped, and not shown with a hole), and a later attempt replaces an earlier one as a
whole. What the model said in the end is in the log; a draft is never needed for it. Pure.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from perdure.core import limits


class Draft(NamedTuple):
    """The beginning of a reply's text, as that attempt at that turn has it."""

    turn: int
    attempt: int
    text: str


class Delta(NamedTuple):
    """More of a draft: `text` stands at its character `at`."""

    task_id: str
    turn: int
    attempt: int
    at: int
    text: str


def joined(draft: Draft | None, delta: Delta) -> Draft | None:
    """Return the draft with the delta in it; None where its beginning is missing.

    A delta of an attempt that a later one has replaced changes nothing.
    """
    if draft is not None and (delta.turn, delta.attempt) < (draft.turn, draft.attempt):
        return draft
    text = draft.text if draft is not None and draft[:2] == (delta.turn, delta.attempt) else ""
    if delta.at > len(text):
        return None
    longer = delta.at + len(delta.text) > len(text)
    return Draft(delta.turn, delta.attempt, text[: delta.at] + delta.text if longer else text)


def pieces(task_id: str, draft: Draft, after: int) -> Iterator[Delta]:
    """Yield the draft past that many characters, as deltas that fit into a datagram."""
    for at in range(after, len(draft.text), limits.DELTA_CHARS_MAX):
        yield Delta(task_id, draft.turn, draft.attempt, at, draft.text[at : at + limits.DELTA_CHARS_MAX])


def packed(deltas: Iterable[Delta]) -> bytes:
    """Return deltas as they travel."""
    return json.dumps(list(deltas), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def unpacked(data: bytes) -> tuple[Delta, ...]:
    """Return the deltas that came; none where it is not what `packed` writes, as from another release."""
    try:
        found = tuple(Delta(*each) for each in json.loads(data))
    except (ValueError, TypeError):
        return ()
    kinds = (str, int, int, int, str)
    return found if all(all(map(isinstance, each, kinds)) for each in found) else ()


class DraftBoard(Protocol):
    """The drafts that this process knows: its own, and those that it hears of while it listens."""

    def say(self, task_id: str, turn: int, attempt: int, text: str) -> None:
        """Take the next piece of a reply that is made here, and tell it to whoever listens; never blocks or fails."""
        ...

    def of(self, task_id: str) -> Draft | None:
        """Return what is known of the latest draft of a task."""
        ...

    def watch(self, task_id: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Listen, and call `changed` when there is more of a task's draft, until what this returns is called."""
        ...


class DraftKeeper(Protocol):
    """A store with a board beside it."""

    @property
    def drafts(self) -> DraftBoard:
        """The texts of replies that are being made."""
        ...
