"""Section 3 of A2A 1.0, one row a test, on every binding: reading tasks, listing them, ending them."""

import pytest

from tests.a2a.specified import Ask, Served, sending, state

pytestmark = pytest.mark.slow


def conversation(ask: Ask) -> dict[str, object]:
    """Return a task with three messages: what was asked for, what was asked back, the answer."""
    task = ask.send("ask")
    return ask.send("a refund", taskId=task["id"])


def test_a_task_is_read_as_it_is(ask: Ask) -> None:
    """3.1.3: status, artifacts and history."""
    task = ask.send("hello")
    assert ask.get(task) == task
    assert task["status"]["timestamp"]


def test_a_task_that_is_not_there(ask: Ask) -> None:
    """3.1.3, 3.1.5, 3.1.6: TaskNotFoundError."""
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        assert ask.refused(method, {"id": "t-none"}).reason == "TASK_NOT_FOUND"


def test_all_history_without_a_length(ask: Ask) -> None:
    """3.2.4: unset is no limit."""
    assert len(ask.get(conversation(ask))["history"]) == 3


def test_no_history_for_zero(ask: Ask) -> None:
    """3.2.4: 0 asks for none; the field is left out or empty."""
    assert not ask.get(conversation(ask), historyLength=0).get("history")


def test_the_latest_history_for_a_number(ask: Ask) -> None:
    """3.2.4: n asks for the n most recent, in order."""
    task = conversation(ask)
    latest = ask.get(task, historyLength=2)["history"]
    assert [message["parts"][0]["text"] for message in latest] == ["Refund or replacement?", "a refund"]


def test_history_is_bounded_in_an_answer_to_a_message_too(ask: Ask) -> None:
    """3.2.2, 3.2.4: `historyLength` of SendMessage's configuration."""
    given = sending()
    given["configuration"]["historyLength"] = 0
    assert not ask.call("SendMessage", given)["task"].get("history")


def test_a_negative_history_is_an_error(ask: Ask) -> None:
    """3.2.4: less than 0 is refused, everywhere, and starts nothing."""
    given = sending(contextId="c-negative")
    given["configuration"]["historyLength"] = -1
    for method, params in (
        ("GetTask", {"id": ask.send()["id"], "historyLength": -1}),
        ("ListTasks", {"historyLength": -1}),
        ("SendMessage", given),
    ):
        refused = ask.refused(method, params)
        assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ("historyLength",))
    assert ask.call("ListTasks", {"contextId": "c-negative"}).get("totalSize", 0) == 0


# --- lists --------------------------------------------------------------------------------------------------------


def listed(ask: Ask, **fields: object) -> list[str]:
    return [task["id"] for task in ask.call("ListTasks", fields).get("tasks", [])]


def test_the_newest_status_is_listed_first(ask: Ask) -> None:
    """3.1.4: by the time of the status, descending: who was answered last comes first."""
    context = f"c-order-{ask.name}"
    first = ask.send("ask", contextId=context)
    second = ask.send("hello", contextId=context)
    assert listed(ask, contextId=context) == [second["id"], first["id"]]
    ask.send("a refund", taskId=first["id"])
    assert listed(ask, contextId=context) == [first["id"], second["id"]]


def test_a_list_is_filtered(ask: Ask) -> None:
    """3.1.4: by context, status and time of the status."""
    context = f"c-filter-{ask.name}"
    waiting, done = ask.send("ask", contextId=context), ask.send(contextId=context)
    assert listed(ask, contextId=context, status="TASK_STATE_INPUT_REQUIRED") == [waiting["id"]]
    assert listed(ask, contextId=context, status="TASK_STATE_COMPLETED") == [done["id"]]
    assert listed(ask, contextId=context, status="TASK_STATE_REJECTED") == []
    assert listed(ask, contextId=context, statusTimestampAfter=done["status"]["timestamp"]) == [done["id"]]
    assert listed(ask, contextId="c-none") == []


def test_pages_hang_together(ask: Ask) -> None:
    """3.1.4: each task once, whatever the size; the token is always there, and empty on the last page."""
    context = f"c-pages-{ask.name}"
    sent = [ask.send(contextId=context)["id"] for _ in range(5)]
    seen: list[str] = []
    token = None
    while token != "":
        page = ask.call("ListTasks", {"contextId": context, "pageSize": 2, **({"pageToken": token} if token else {})})
        seen += [task["id"] for task in page["tasks"]]
        assert (page["totalSize"], page["pageSize"]) == (5, 2)
        # In gRPC's JSON an empty text is left out; the two others must have it.
        token = page.get("nextPageToken", "") if ask.name == "grpc" else page["nextPageToken"]
    assert seen == sent[::-1]


def test_an_empty_page_has_a_token_too(served: Served) -> None:
    """3.1.4: `nextPageToken`, `pageSize`, `totalSize` are there when nothing is."""
    page = served.house.client.get("/tasks", params={"contextId": "c-none"}).json()
    assert (page["tasks"], page["nextPageToken"], page["totalSize"]) == ([], "", 0)


def test_artifacts_are_listed_only_when_asked_for(ask: Ask) -> None:
    """3.1.4: by default the field is not there at all."""
    context = f"c-artifacts-{ask.name}"
    ask.send(contextId=context)
    (bare,) = ask.call("ListTasks", {"contextId": context})["tasks"]
    assert "artifacts" not in bare
    (whole,) = ask.call("ListTasks", {"contextId": context, "includeArtifacts": True})["tasks"]
    assert len(whole["artifacts"]) == 1


@pytest.mark.parametrize("size", [0, 101, -1])
def test_a_page_has_1_to_100_tasks(ask: Ask, size: int) -> None:
    """3.1.4: other sizes are refused."""
    refused = ask.refused("ListTasks", {"pageSize": size})
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ("pageSize",))


def test_a_token_that_is_none(ask: Ask) -> None:
    """3.1.4: a token of nobody's is refused."""
    assert ask.refused("ListTasks", {"pageToken": "here"}).fields == ("pageToken",)


@pytest.mark.parametrize("name", ["jsonrpc", "http"])
def test_a_state_that_there_is_not(served: Served, name: str) -> None:
    """3.1.4: a filter that filters nothing would be a wrong answer. (gRPC's client cannot name one.)"""
    refused = served.binding(name).refused("ListTasks", {"status": "TASK_STATE_DONE"})
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ("status",))


# --- ends ---------------------------------------------------------------------------------------------------------


def test_a_task_is_canceled(ask: Ask) -> None:
    """3.1.5: the answer is the task as it then is."""
    task = ask.send("ask")
    assert state(ask.call("CancelTask", {"id": task["id"]})) == "CANCELED"
    assert state(ask.get(task)) == "CANCELED"


def test_a_task_that_works_is_canceled(ask: Ask, served: Served) -> None:
    """3.1.5: also in the middle of a tool."""
    served.house.hold.touch()
    try:
        task = ask.send("ship", wait=False)
        served.house.until(lambda: state(ask.get(task)) == "WORKING", "the task works")
        assert state(ask.call("CancelTask", {"id": task["id"]})) == "CANCELED"
    finally:
        served.house.hold.unlink()


def test_a_task_that_has_ended_cannot_be_canceled(ask: Ask) -> None:
    """3.1.5: TaskNotCancelableError, after a cancel too."""
    for task in (ask.send(), ask.call("CancelTask", {"id": ask.send("ask")["id"]})):
        assert ask.refused("CancelTask", {"id": task["id"]}).reason == "TASK_NOT_CANCELABLE"
