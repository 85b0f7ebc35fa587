"""Whether a conversation came out right: the shop against one where each call was made directly, once.

The judge reads only the shop's log and data. A shop defends itself, so an effect that was wrongly begun twice may
leave the data right; what was *received* is therefore judged too.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.retail.data import Data, Json, Task, conversation
from tests.retail.shop import ONCE_NAMES, READ_NAMES, Answer, Line, Shop

Write = tuple[str, str]
"""A writing tool and its arguments as canonical JSON."""


@dataclass(frozen=True)
class Direct:
    """What calling everything directly, once, came to."""

    state: str
    applied: Counter[Write]
    refused: Counter[Write]
    answers: tuple[Answer, ...]


def direct(task: Task, data: Data, path: Path) -> Direct:
    """Make a task's calls once each in a new shop at `path`."""
    shop = Shop.create(path, data)
    calls, _ = conversation(task)
    answers = tuple(shop.call(tool, arguments, f"direct/{at}") for at, (tool, arguments) in enumerate(calls))
    return Direct(shop.final_state(), applied_writes(shop), _writes(shop.log(), "refused"), answers)


def applied_writes(shop: Shop) -> Counter[Write]:
    """Return how often each write was applied."""
    return _writes(shop.log(), "applied")


def judge(shop: Shop, expected: Direct) -> list[str]:
    """Return what differs from direct execution, in words; empty means right."""
    log = shop.log()
    state = shop.final_state()
    differences: list[str] = []
    if state != expected.state:
        differences += _state_differences(json.loads(state), json.loads(expected.state))
    differences += _write_differences(_writes(log, "applied"), expected.applied)
    differences += _received_differences(log, expected)
    return differences


def _writes(log: list[Line], outcome: str) -> Counter[Write]:
    return Counter((line.tool, line.arguments) for line in log if line.outcome == outcome and _writing(line))


def _writing(line: Line) -> bool:
    return line.tool not in READ_NAMES and line.tool != ""


def _write_differences(applied: Counter[Write], expected: Counter[Write]) -> list[str]:
    return [
        f"{tool} {arguments} was applied {applied[tool, arguments]} times, not {expected[tool, arguments]}"
        for tool, arguments in sorted(applied | expected)
        if applied[tool, arguments] != expected[tool, arguments]
    ]


def _received_differences(log: list[Line], expected: Direct) -> list[str]:
    differences: list[str] = []
    for line in log:
        if not _writing(line):
            continue
        call = f"{line.tool} {line.arguments} under {line.key}"
        if line.outcome == "refused_reuse":
            differences.append(f"{call} came under the key of another call")
        elif line.outcome == "repeated" and line.tool in ONCE_NAMES:
            differences.append(f"{call} came again under the same key")
        elif line.outcome == "refused" and (line.tool, line.arguments) not in expected.refused:
            differences.append(f"{call} was refused, which direct execution did not see: {line.result}")
    received = {(line.tool, line.arguments) for line in log}
    # Applied ones that are missing were named above.
    missing = sorted(write for write in expected.refused if write not in received)
    differences += [f"{tool} {arguments} never came" for tool, arguments in missing]
    return differences


def _state_differences(found: Json, expected: Json) -> list[str]:
    differences: list[str] = []
    for kind, documents in expected.items():
        for document_id in sorted(documents.keys() | found[kind].keys()):
            here, there = found[kind].get(document_id, {}), documents.get(document_id, {})
            fields = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
            differences += [
                f"{kind} {document_id}: {name} is {here.get(name)!r}, not {there.get(name)!r}" for name in fields
            ]
    return differences
