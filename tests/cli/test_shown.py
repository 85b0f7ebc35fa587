"""`perdure show` of a task whose call timed out, lost its worker and then completed, as real processes.

Where Temporal runs the table has every activity; when nothing runs, the calls that the log tells of. Who really made an
attempt is noted by the outside.
"""

import signal

import pytest

from tests.cli.desk import Desk
from tests.cli.test_tables import printed

pytestmark = pytest.mark.slow

TRY = ["activity", "call", "attempt", "outcome", "took", "worker", "why"]
ACTIVITY = ["activity", "scheduled", "completed", "timed out", "failed", "cancelled", "open", "workers"]
EFFECT = ["key", "tool", "class", "begun", "outcome"]


def test_every_activity_is_shown_with_what_became_of_it_and_who_did_it(desk: Desk) -> None:
    with desk.started("run", "helpdesk:agent", "ask") as owner:
        owner.until(lambda: "INPUT_REQUIRED" in owner.out, "the owner of Temporal to rest")
        done = desk.beside("beside").perdure("run", "helpdesk:agent", "pack")
        assert done.code == 0, done.err
        joined = desk.here("show", done.task_id).out
        told = desk.here("show", done.task_id, "--json").objects[0]
        owner.end(signal.SIGINT)
    alone = desk.here("show", done.task_id).out
    told_alone = desk.here("show", done.task_id, "--json").objects[0]

    packing = desk.world_lines("packing")
    assert [attempt for _, attempt, _ in packing] == ["1", "2", "3"]
    (key,), pids = {key for key, _, _ in packing}, [int(pid) for _, _, pid in packing]
    tries = list(zip(("timed_out", "failed", "completed"), pids, strict=True))
    history = "from Temporal's history"
    assert _tries(joined, history) == tries
    rows = _per_activity(joined, history)
    assert rows["invoke_llm"][:6] == ["2", "2", "0", "0", "0", "0"]
    assert rows["invoke_tool"][:6] == ["3", "1", "1", "1", "0", "0"]
    assert [_pid(share) for share in rows["invoke_tool"][6].split(", ")] == list(dict.fromkeys(pids))
    assert rows.keys() >= {"intake", "persist"}
    for name, row in rows.items():
        counts = [int(cell) for cell in row[:6]]
        assert counts[0] == sum(counts[1:]), name
        assert counts[1] > 0, name
    assert told["sources"] == "store and Temporal"
    assert {each["activity"] for each in told["activities"]} == rows.keys()
    assert all(each["scheduled"] == sum(each["workers"].values()) for each in told["activities"])

    log = "from the event log alone: model and tool calls, without Temporal's history"
    assert _tries(alone, log) == tries
    of_calls = {name: row for name, row in rows.items() if name.startswith("invoke_")}
    assert _per_activity(alone, log) == of_calls, "the two witnesses disagree"
    assert told_alone["sources"] == "store"
    assert told_alone["activities"] == [each for each in told["activities"] if each["activity"] in of_calls]

    for text in (joined, alone):
        heading, (*effect, begun, outcome) = printed(text)["effects"]
        assert heading == EFFECT
        assert [*effect, outcome] == [key, "pack", "idempotent", "done: ok"]
        assert [_pid(attempt) for attempt in begun.split(", ")] == pids


def _tries(text: str, origin: str) -> list[tuple[str, int]]:
    """Return outcome and process of each attempt at the tool's call."""
    heading, *rows = printed(text)[f"attempts, {origin}"]
    assert heading == TRY
    calls = [row for row in rows if row[:2] == ["invoke_tool", "turn 1/0 pack"]]
    assert [row[2] for row in calls] == ["1", "2", "3"]
    return [(row[3], _pid(row[5])) for row in calls]


def _per_activity(text: str, origin: str) -> dict[str, list[str]]:
    heading, *rows = printed(text)[f"per activity, {origin}"]
    assert heading == ACTIVITY
    return {name: row for name, *row in rows}


def _pid(words: str) -> int:
    """Return the process in a worker's identity, which is the last of these words."""
    return int(words.rsplit(maxsplit=1)[-1].partition("@")[0])
