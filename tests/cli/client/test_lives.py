"""Random lives of a task, heard by a client for each message: it waits for nothing that does not come, and is right.

What is right is read from the machine's own log: the one end of the run into which the message was promoted.
"""

from random import Random

from perdure.cli.client.ends import Ending, MessageEnd, TaskEnd
from tests.cli.client.heard import fed, heard
from tests.core.life import Life
from tests.core.task import Task

LIVES = 150
STEPS = 50


def right(task: Task, message_id: str) -> str:
    """Return what a message came to: the end of its run, or that it was taken back, is left over, or waits."""
    runs = [row.run for row in task.rows("message.promoted") if row.data["message_id"] == message_id]
    if runs:
        ends = [str(row.data["end"]) for row in task.rows("run.ended") if row.run == runs[0]]
        return ends[0] if ends else "waiting"
    if any(row.data["message_id"] == message_id for row in task.rows("message.withdrawn")):
        return "withdrawn"
    return "unprocessed" if task.state.terminal else "parked"


def told(ending: Ending) -> tuple[str, str]:
    """Return outcome and reason, as the command would end now; empty where it would wait."""
    end = ending.end or ending.rest
    return ("", "") if end is None else (end.outcome, end.reason)


def test_every_message_comes_to_the_end_of_its_own_run_in_any_order() -> None:
    seen: set[str] = set()
    for seed in range(LIVES):
        life = Life(Random(seed))
        life.live(STEPS)
        said = heard(life.task)
        shuffled = Random(seed).sample(said, len(said))
        for row in life.task.rows("message.admitted"):
            message_id = str(row.data["message_id"])
            ending, want = fed(MessageEnd(message_id), said), right(life.task, message_id)
            where = f"seed {seed}, message {message_id}, which is {want}: {told(ending)}"
            seen.add(want)
            match want:
                case "answered":
                    assert told(ending) == ("answered", ""), where
                case "failed" | "stopped":
                    assert ending.end is not None, where
                    assert told(ending)[0] == "unanswered", where
                case "withdrawn" | "unprocessed":
                    assert told(ending) == ("unanswered", want), where
                case "parked":
                    assert ending.end is None, where
                    assert told(ending)[0] == "unanswered", where
                case _:
                    assert told(ending)[0] == "waiting", where
            assert told(fed(MessageEnd(message_id), shuffled)) == told(ending), where
        watched = fed(TaskEnd(), said)
        assert (watched.end is not None) == life.task.state.terminal, f"seed {seed}"
        assert told(watched)[0] or life.task.state.help or not life.task.log, f"seed {seed}"
    assert seen >= {"answered", "failed", "stopped", "withdrawn", "unprocessed", "parked"}
