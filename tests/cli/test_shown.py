"""`perdure show` of a task whose call timed out, lost its worker and then completed, as real processes.

One worker is stopped in the call, so that Temporal waits for its heartbeat in vain; the next one is killed in it; the
third one ends it. Where Temporal runs the table has every activity; when nothing runs, the calls that the log tells of.
"""

import os
import signal

import pytest

from tests.cli.desk import Desk, Started, until
from tests.cli.test_tables import printed

pytestmark = pytest.mark.slow

TRY = ["activity", "call", "attempt", "outcome", "took", "worker", "why"]
ACTIVITY = ["activity", "scheduled", "completed", "timed out", "failed", "cancelled", "open", "workers"]
EFFECT = ["key", "tool", "class", "begun", "outcome"]


def test_every_activity_is_shown_with_what_became_of_it_and_who_did_it(desk: Desk) -> None:
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ask") as owner:
        owner.until(lambda: "INPUT_REQUIRED" in owner.out, "the owner of Temporal to rest")
        beside = desk.beside("beside")
        with beside.started("run", "helpdesk:agent", "ship") as run:
            stopped = _begun(desk, run, 1)
            os.kill(stopped, signal.SIGSTOP)
            killed = _begun(desk, run, 2)
            os.kill(killed, signal.SIGKILL)
            ended = _begun(desk, run, 3)
            os.kill(stopped, signal.SIGKILL)
            desk.hold.unlink()
            done = run.ended()
        assert done.code == 0, done.err
        joined = desk.here("show", done.task_id).out
        told = desk.here("show", done.task_id, "--json").objects[0]
        owner.end(signal.SIGINT)
    alone = desk.here("show", done.task_id).out
    told_alone = desk.here("show", done.task_id, "--json").objects[0]

    tries = [("timed_out", stopped), ("failed", killed), ("completed", ended)]
    history = "from Temporal's history"
    assert _tries(joined, history) == tries
    rows = _per_activity(joined, history)
    assert rows["invoke_llm"][:6] == ["2", "2", "0", "0", "0", "0"]
    assert rows["invoke_tool"][:6] == ["3", "1", "1", "1", "0", "0"]
    assert [_pid(share) for share in rows["invoke_tool"][6].split(", ")] == [stopped, killed, ended]
    assert rows.keys() >= {"intake", "persist"}
    assert all(row[0] == row[1] and "@" in row[6] for name, row in rows.items() if name != "invoke_tool")
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
        heading, (key, tool, kind, begun, outcome) = printed(text)["effects"]
        assert heading == EFFECT
        assert [key, tool, kind, outcome] == [desk.world_lines("begun")[0][0], "ship", "idempotent", "done: ok"]
        assert [_pid(attempt) for attempt in begun.split(", ")] == [stopped, killed, ended]


def _begun(desk: Desk, run: Started, count: int) -> int:
    """Wait until the tool was begun so many times, and return the process that began it last."""
    until(lambda: len(desk.world_lines("begun")) == count, f"begin {count}", lambda: run.err)
    return int(desk.world_lines("begun")[-1][2])


def _tries(text: str, origin: str) -> list[tuple[str, int]]:
    """Return outcome and process of each attempt at the tool's call."""
    heading, *rows = printed(text)[f"attempts, {origin}"]
    assert heading == TRY
    calls = [row for row in rows if row[:2] == ["invoke_tool", "turn 1/0 ship"]]
    assert [row[2] for row in calls] == ["1", "2", "3"]
    return [(row[3], _pid(row[5])) for row in calls]


def _per_activity(text: str, origin: str) -> dict[str, list[str]]:
    heading, *rows = printed(text)[f"per activity, {origin}"]
    assert heading == ACTIVITY
    return {name: row for name, *row in rows}


def _pid(words: str) -> int:
    """Return the process in a worker's identity, which is the last of these words."""
    return int(words.rsplit(maxsplit=1)[-1].partition("@")[0])
