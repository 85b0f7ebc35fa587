"""Section 3 of A2A 1.0, one row a test, on every binding: streams."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.a2a.extension import URI
from tests.a2a.house import Json
from tests.a2a.specified import Ask, Served, sending, state

pytestmark = pytest.mark.slow


@pytest.fixture
def hold(served: Served) -> Iterator[None]:
    """While it is held, a task that ships works."""
    served.house.hold.touch()
    yield
    served.house.hold.unlink(missing_ok=True)


def working(ask: Ask, served: Served) -> Json:
    """Return a task in the middle of its tool: nothing happens to it until the tool ends."""
    task = ask.send("ship", wait=False)
    key = f"{task['id']}/1/0"
    served.house.until(lambda: any(key in line for line in served.house.world_lines("begun")), "the tool has begun")
    return task


def kinds(events: list[Json]) -> list[str]:
    return [next(iter(event)) for event in events]


def number(event: Json) -> int:
    (what,) = event.values()
    return int(what["metadata"][URI]["generation"])


def test_a_stream_begins_with_the_task_and_closes_at_its_end(ask: Ask) -> None:
    """3.1.2: the Task, then updates; the last has a terminal state."""
    events = list(ask.stream("SendStreamingMessage", sending("hello")))
    assert kinds(events)[0] == "task"
    assert set(kinds(events)[1:]) == {"statusUpdate", "artifactUpdate"}
    assert state(events[-1]["statusUpdate"]) == "COMPLETED"
    assert len({next(iter(event.values())).get("taskId", events[0]["task"]["id"]) for event in events}) == 1


def test_events_come_in_the_order_in_which_they_were_made(ask: Ask) -> None:
    """3.5.2: our numbers say so without a gap."""
    events = list(ask.stream("SendStreamingMessage", sending("hello")))
    assert [number(event) for event in events] == list(range(len(events)))


def test_an_artifact_begins_whole(ask: Ask) -> None:
    """4.2.2: nothing is appended to an artifact that the client has not seen."""
    seen: set[str] = set()
    for event in ask.stream("SendStreamingMessage", sending("hello")):
        update = event.get("artifactUpdate")
        if update is not None:
            assert not update.get("append") or update["artifact"]["artifactId"] in seen
            seen.add(update["artifact"]["artifactId"])
    assert seen


def test_a_stream_goes_on_while_the_task_waits(ask: Ask) -> None:
    """3.1.2: only a terminal state closes it: the question is answered, and the same stream says so."""
    states: list[str] = []
    for event in ask.stream("SendStreamingMessage", sending("ask")):
        what = next(iter(event.values()))
        if "status" in what and (not states or states[-1] != state(what)):
            states.append(state(what))
            if states[-1] == "INPUT_REQUIRED":
                ask.send("a refund", taskId=what["taskId"], wait=False)
    assert states[-1] == "COMPLETED"
    assert states.count("INPUT_REQUIRED") == 1


def test_a_subscription_begins_with_the_task_as_it_is(ask: Ask, served: Served, hold: None) -> None:
    """3.1.6: so that nothing is lost between GetTask and SubscribeToTask; it ends with the task."""
    task = working(ask, served)
    events = ask.stream("SubscribeToTask", {"id": task["id"]})
    first = next(events)["task"]
    assert (first["id"], state(first)) == (task["id"], "WORKING")
    served.house.hold.unlink()
    rest = list(events)
    assert state(rest[-1]["statusUpdate"]) == "COMPLETED"


def test_a_subscription_to_a_task_that_has_ended_is_refused(ask: Ask) -> None:
    """3.1.6: UnsupportedOperationError."""
    task = ask.send()
    assert ask.refused("SubscribeToTask", {"id": task["id"]}).reason == "UNSUPPORTED_OPERATION"


def test_a_subscription_goes_on_after_any_event(ask: Ask, served: Served, hold: None) -> None:
    """3.5.2: a client that comes back with the number of the last event gets those after it, once each."""
    task = working(ask, served)
    served.house.hold.unlink()
    served.house.until(lambda: state(ask.get(task)) == "COMPLETED", "the task is done")
    events = list(ask.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID="2"))
    assert number(events[0]) == 2
    assert [number(event) for event in events] == list(range(2, 2 + len(events)))
    assert state(events[-1]["statusUpdate"]) == "COMPLETED"


def test_every_stream_gets_the_same(ask: Ask, served: Served, hold: None) -> None:
    """3.5.2: the same events in the same order on all streams of a task."""
    task = working(ask, served)
    with ThreadPoolExecutor(3) as pool:
        streams = [ask.stream("SubscribeToTask", {"id": task["id"]}) for _ in range(3)]
        firsts = [next(stream) for stream in streams]
        rests = [pool.submit(list, stream) for stream in streams]
        served.house.hold.unlink()
        all_rests = [rest.result(timeout=60) for rest in rests]
    assert firsts[0] == firsts[1] == firsts[2]
    assert all_rests[0] == all_rests[1] == all_rests[2]
    assert all_rests[0]


def test_a_client_that_leaves_or_never_reads_changes_nothing(ask: Ask, served: Served, hold: None) -> None:
    """3.5.2: neither for the task nor for others: one goes, one takes nothing, the third sees the end."""
    task = working(ask, served)
    params = {"id": task["id"]}
    gone, silent, third = (ask.stream("SubscribeToTask", params) for _ in range(3))
    for stream in (gone, silent, third):
        assert "task" in next(stream)
    gone.close()  # type: ignore[attr-defined]
    served.house.hold.unlink()
    assert state(list(third)[-1]["statusUpdate"]) == "COMPLETED"
    assert state(list(silent)[-1]["statusUpdate"]) == "COMPLETED"
