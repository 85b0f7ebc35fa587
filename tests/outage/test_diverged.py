"""Store and Temporal from different moments, as real copies of their files: the task parks, and nothing is called.

What went wrong is seen before anything is called, is said to whoever asks, and is over when the right files are back.
"""

import json

import pytest

from perdure import Task
from perdure.core.errors import Diverged
from perdure.temporal.connection import temporal_client
from tests.outage.data_folder import STORE, TEMPORAL, DataFolder
from tests.temporal.bench import activities, event, logged, rows_of, until

pytestmark = pytest.mark.slow


async def answered(task: Task, text: str) -> None:
    number = await task.send(text)
    await event(task, "run.ended", after=number, end="answered")


async def settled(task: Task) -> bool:
    monitor = await task.monitor()
    return not monitor.flights and monitor.unwritten == 0


async def two_moments(data: DataFolder) -> str:
    """Live through two moments, kept as `early` and `late`; return the task."""
    async with data.app() as app:
        task = await app.send("go")
        await event(task, "run.ended", end="answered")
        await until(lambda: settled(task))
    data.keep("early")
    async with data.app() as app:
        later = app.task(task.id)
        await answered(later, "more")
        await until(lambda: settled(later))
    data.keep("late")
    return task.id


@pytest.mark.parametrize(("file", "error"), [(STORE, "StoreBehind"), (TEMPORAL, "StoreAhead")])
async def test_the_task_parks_and_goes_on_when_the_right_files_are_back(
    data: DataFolder, file: str, error: str
) -> None:
    task_id = await two_moments(data)
    assert data.outside.count("act") == 2
    data.put_back(file, "early")

    async with data.app() as app:
        task = app.task(task_id)
        tries = []
        for _ in range(3):  # whoever asks again is told the same, and it is tried once for each
            with pytest.raises(Diverged, match=error):
                await task.send("now", message_id="m-now")
            tries.append(await attempted(data, task_id))
        assert tries[2] - tries[1] == tries[1] - tries[0] < 5, "it is tried more often than it is asked for"
        monitor = await task.monitor()
        assert monitor.degraded
        assert error in monitor.diverged
        state = await app.client.state(task_id)
        assert (state.status, state.reason) == ("input_required", "store")
        await told(data, task_id, error)
    assert data.outside.count("act") == 2, "something was called"

    data.put_back(file, "late")
    async with data.app() as app:
        task = app.task(task_id)
        await answered(task, "and now")
        await until(lambda: settled(task))
        assert not (await task.monitor()).degraded
        stored = await logged(app.store, task_id)
        assert [each.event.number for each in stored] == list(range(1, len(stored) + 1)), "P6"
        promoted = [row.data["message_id"] for row in rows_of(stored, "message.promoted")]
        # What the task took in meanwhile stands in Temporal, and went with the one that was put away.
        assert ("m-now" in promoted) == (file == STORE), "P1"
        assert data.outside.count("act") == len(promoted) == len(set(promoted))
    assert set(data.outside.keys().values()) == {1}, "P3"


async def attempted(data: DataFolder, task_id: str) -> int:
    """Return how many attempts of activities the task has scheduled, by Temporal's own history."""
    async with temporal_client(data.settings.temporal) as client:
        return len(activities(await client.get_workflow_handle(task_id).fetch_history()))


async def told(data: DataFolder, task_id: str, error: str) -> None:
    """See that `perdure show` says it, to people and to programs."""
    shown = json.loads((await data.perdure("show", task_id, "--json")).out)
    assert (shown["task"]["state"], shown["task"]["reason"]) == ("input_required", "store")
    assert shown["diverged"].startswith(error)
    said = (await data.perdure("show", task_id)).out
    assert "state    INPUT_REQUIRED (store): store and Temporal disagree" in said
    assert error in said


@pytest.mark.parametrize(("file", "error"), [(STORE, "StoreBehind"), (TEMPORAL, "StoreAhead")])
async def test_a_run_that_was_cut_off_is_not_taken_up(data: DataFolder, file: str, error: str) -> None:
    """The same in the middle of a run: a command that goes on with the task says so and ends, and calls nothing."""
    task_id = await cut_off_twice(data)
    acts = data.outside.all()
    data.put_back(file, "early")
    done = await data.perdure("run", "tests.outage.acting:agent", "--resume", task_id)
    assert done.code == 1, done.err
    assert "store and Temporal disagree" in done.err
    assert error in done.err
    assert "defect" not in done.err
    assert data.outside.all() == acts, "something was called"

    data.put_back(file, "late")
    data.open(3)
    done = await data.perdure("run", "tests.outage.acting:agent", "and now", "--resume", task_id)
    assert done.code == 0, done.err
    assert data.outside.count("act") == 2, "one in the run that was cut off, one for the message"


async def cut_off_twice(data: DataFolder) -> str:
    """Cut a run off in its first call and in its third, kept as `early` and `late`."""
    async with data.app() as app:
        task = await app.send("held")
        await until(lambda: data.outside.count("hold") == 1)
    data.keep("early")
    data.open(1)
    async with data.app():
        await until(lambda: any(noted.key == f"{task.id}/3/0" for noted in data.outside.of("hold")))
    data.keep("late")
    return task.id
