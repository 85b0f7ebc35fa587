"""Whether a conversation that was run through the product came out right, by the shop and by the task's own log."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perdure import TaskEvent
from perdure.core.content import ModelEntry, ToolEntry
from tests.retail.judge import Direct, judge
from tests.retail.shop import ONCE_NAMES, Answer, Shop


@dataclass(frozen=True)
class Ended:
    """A conversation that is over: its log and its shop."""

    task_id: str
    conversation_id: int
    events: tuple[TaskEvent, ...]
    shop: Shop


def faults(ended: Ended, expected: Direct, last: str) -> list[str]:
    """Return what is wrong, in words; empty means right. `last` is what the customer should have been told."""
    found = [*judge(ended.shop, expected), *_log_faults(ended.events), *_begun_twice(ended.shop)]
    found += _said_faults(ended.events, expected.answers, last)
    return [f"{ended.task_id}: {fault}" for fault in found]


def _log_faults(events: Sequence[TaskEvent]) -> list[str]:
    numbers = [event.number for event in events]
    found = []
    if numbers != list(range(1, len(numbers) + 1)):
        found.append(f"P6: events are numbered {numbers}")
    states = [str(event.data["state"]) for event in events if event.kind == "task.status"]
    if states[-1:] != ["completed"]:
        found.append(f"it is {', '.join(states) or 'nothing'}: {events[-1].data if events else 'no event'}")
    found += [f"P4: an outcome was left unknown: {event.data}" for event in events if event.kind == "tool.in_doubt"]
    acted_on = sum(event.kind == "message.promoted" for event in events)
    if acted_on != 1:
        found.append(f"P1: its message was acted on {acted_on} times")
    ends = [event.data for event in events if event.kind == "run.ended"]
    if len(ends) != 1:
        found.append(f"P5: its run has {len(ends)} ends: {ends}")
    answered = Counter(event.turn for event in events if event.kind == "model.answered")
    found += [f"P2: turn {turn} was answered {count} times" for turn, count in answered.items() if count != 1]
    return found


def _begun_twice(shop: Shop) -> list[str]:
    came = Counter(arrival.key for arrival in shop.arrivals() if arrival.tool in ONCE_NAMES)
    return [f"P3: {key} reached the shop {count} times" for key, count in came.items() if count != 1]


def _said_faults(events: Sequence[TaskEvent], answers: Sequence[Answer], last: str) -> list[str]:
    """The model must hear exactly what direct execution answered, whatever it took, and say the last sentence."""
    entries = [entry for event in events for entry in event.entries]
    results = [entry.result for entry in entries if isinstance(entry, ToolEntry)]
    if len(results) != len(answers):
        return [f"R14: {len(results)} results stand for {len(answers)} calls"]
    found = [
        f"call {at} ({result.tool}) was told {result.status}: {result.text[:200]}"
        for at, (result, answer) in enumerate(zip(results, answers, strict=True))
        if (result.status == "ok") != answer.ok or not _same(result.text, answer.result)
    ]
    said = [entry.reply.text for entry in entries if isinstance(entry, ModelEntry)]
    if said[-1:] != [last]:
        found.append(f"the customer was told {said[-1:]}, not {last!r}")
    return found


def _same(text: str, result: Any) -> bool:
    return bool(text == result if isinstance(result, str) else json.loads(text) == result)
