"""Section 3 of A2A 1.0, one row a test, on every binding: sending messages, and whose they are."""

import base64
import re

import grpc
import httpx
import pytest

from tests.a2a.bindings import BINDINGS
from tests.a2a.specified import Ask, Served, sending, state

pytestmark = pytest.mark.slow


def test_a_message_becomes_a_task(ask: Ask) -> None:
    """3.1.1: the answer is a Task or a Message; here it is always a task, which nothing can lose."""
    task = ask.send("hello")
    assert state(task) == "COMPLETED"
    assert task["artifacts"][0]["parts"] == [{"text": "you said: hello"}]


def test_a_message_to_a_task_that_has_ended_is_refused(ask: Ask) -> None:
    """3.1.1: UnsupportedOperationError, also for a stream (3.1.2)."""
    task = ask.send()
    for method in ("SendMessage", "SendStreamingMessage"):
        assert ask.refused(method, sending("more", taskId=task["id"])).reason == "UNSUPPORTED_OPERATION"
    assert [message["role"] for message in ask.get(task)["history"]] == ["ROLE_USER"]


def test_a_media_type_that_is_not_taken_is_refused(ask: Ask) -> None:
    """3.1.1: ContentTypeNotSupportedError, and nothing begins."""
    part = {"raw": base64.b64encode(b"x").decode(), "mediaType": "application/x-strange"}
    message = sending(parts=[{"text": "look"}, part], contextId="c-strange")
    for method in ("SendMessage", "SendStreamingMessage"):
        assert ask.refused(method, message).reason == "CONTENT_TYPE_NOT_SUPPORTED"
    assert ask.call("ListTasks", {"contextId": "c-strange"}).get("totalSize", 0) == 0


def test_blocking_waits_for_the_end(ask: Ask) -> None:
    """3.2.2: by default the answer comes with a terminal state and all artifacts."""
    given = sending("hello")
    del given["configuration"]
    task = ask.call("SendMessage", given)["task"]
    assert (state(task), len(task["artifacts"])) == ("COMPLETED", 1)


def test_blocking_waits_for_a_question(ask: Ask) -> None:
    """3.2.2: an interrupted state ends the wait too, and says what is asked."""
    task = ask.send("ask")
    assert state(task) == "INPUT_REQUIRED"
    assert task["status"]["message"]["parts"] == [{"text": "Refund or replacement?"}]


def test_returning_at_once_does_not_wait(ask: Ask, served: Served) -> None:
    """3.2.2, 3.3.3: the task is under way, GetTask has it at once, and it goes on by itself."""
    served.house.hold.touch()
    try:
        task = ask.send("ship", wait=False)
        assert state(task) in {"SUBMITTED", "WORKING"}
        assert ask.get(task)["id"] == task["id"]
    finally:
        served.house.hold.unlink()
    served.house.until(lambda: state(ask.get(task)) == "COMPLETED", "the task is done")


def test_a_client_that_leaves_a_wait_changes_nothing(ask: Ask, served: Served) -> None:
    """3.2.2, 3.5.2: the task is not its connection's: it is there, works, and ends."""
    context = f"c-left-{ask.name}"
    served.house.hold.touch()
    impatient = BINDINGS[ask.name](served.card, wait_s=3)
    try:
        with pytest.raises((httpx.TimeoutException, grpc.RpcError)):
            impatient.call("SendMessage", sending("ship", contextId=context))
        (task,) = ask.call("ListTasks", {"contextId": context})["tasks"]
    finally:
        served.house.hold.unlink()
        impatient.close()
    served.house.until(lambda: state(ask.get(task)) == "COMPLETED", "the task is done")


def test_a_context_is_made_and_named(ask: Ask) -> None:
    """3.4.1: a context that is made is in the answer."""
    assert ask.send()["contextId"]


def test_a_clients_context_is_kept(ask: Ask) -> None:
    """3.4.1, 3.4.3: a context that a client names is used as it is; a new message in it is a new task."""
    context = f"c-{ask.name}"
    first, second = ask.send(contextId=context), ask.send(contextId=context)
    assert first["contextId"] == second["contextId"] == context
    assert first["id"] != second["id"]


def test_a_context_that_cannot_be_kept_is_refused(ask: Ask) -> None:
    """3.4.1: it is refused, and no other is made in its place."""
    refused = ask.refused("SendMessage", sending(contextId="c" * 500))
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ("message.contextId",))


def test_a_tasks_id_is_the_servers(ask: Ask) -> None:
    """3.4.2: every task has an id of its own; an id that a client makes up is TaskNotFoundError."""
    assert ask.send()["id"] != ask.send()["id"]
    for method in ("SendMessage", "SendStreamingMessage"):
        assert ask.refused(method, sending(taskId="t-mine")).reason == "TASK_NOT_FOUND"


def test_the_context_follows_from_the_task(ask: Ask) -> None:
    """3.4.3: a message with only a task's id is in that task's context."""
    task = ask.send("ask")
    answered = ask.send("a refund", taskId=task["id"])
    assert (answered["contextId"], state(answered)) == (task["contextId"], "COMPLETED")
    assert {message["contextId"] for message in answered["history"]} == {task["contextId"]}


def test_another_context_than_the_tasks_is_refused(ask: Ask) -> None:
    """3.4.3: a mismatch is an error, and the task does not get the message."""
    task = ask.send("ask")
    refused = ask.refused("SendMessage", sending("a refund", taskId=task["id"], contextId="c-other"))
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ("message.contextId",))
    assert state(ask.get(task)) == "INPUT_REQUIRED"


def test_a_question_is_answered_by_a_message_with_both_ids(ask: Ask) -> None:
    """3.4.3: the next message with the task's and the context's id goes on."""
    task = ask.send("ask")
    answered = ask.send("a refund", taskId=task["id"], contextId=task["contextId"])
    assert state(answered) == "COMPLETED"
    roles = [message["role"] for message in answered["history"]]
    assert roles == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]


def test_the_same_message_again_is_the_same(ask: Ask) -> None:
    """3.3.1: a follow-up sent twice is taken once; other content under its id is refused."""
    task = ask.send("ask")
    answer = sending("a refund", taskId=task["id"])
    first = ask.call("SendMessage", answer)["task"]
    assert ask.call("SendMessage", answer)["task"] == first
    answer["message"]["parts"] = [{"text": "a replacement"}]
    assert ask.refused("SendMessage", answer).reason == "INVALID_PARAMS"


def test_what_a_message_carries_is_kept(ask: Ask) -> None:
    """4.1.4, 5.7: parts, metadata and references come back as they were sent."""
    parts = [
        {"text": "look", "metadata": {"a": 1.0}},
        {"raw": base64.b64encode(b"\x89PNG").decode(), "mediaType": "image/png", "filename": "a.png"},
        {"url": "https://example.org/a.pdf", "mediaType": "application/pdf"},
        {"data": {"n": [1.0, None]}},
    ]
    given = sending(parts=parts, metadata={"who": "me"}, referenceTaskIds=["t-old"])
    task = ask.call("SendMessage", given)["task"]
    kept = {**given["message"], "taskId": task["id"], "contextId": task["contextId"]}
    assert task["history"][0] == kept


def test_wrong_fields_are_named(ask: Ask) -> None:
    """3.3.2: an error says which field is wrong."""
    for field, message in (
        ("message.parts", {"parts": [{"text": " "}]}),
        ("message.role", {"role": "ROLE_AGENT"}),
        ("message.parts[0].url", {"parts": [{"url": "file:///etc/passwd"}]}),
    ):
        refused = ask.refused("SendMessage", sending(**message))
        assert (refused.reason, refused.fields) == ("INVALID_PARAMS", (field,))


def test_times_are_utc_with_milliseconds(ask: Ask) -> None:
    """5.6.1: ISO 8601 in UTC."""
    timestamp = ask.send()["status"]["timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", timestamp)


def test_unknown_fields_are_ignored(served: Served) -> None:
    """5.7: what a later version adds does not make a request fail."""
    given = sending()
    given["message"]["mood"] = "fine"
    given["later"] = {"a": 1}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": given}
    assert "result" in served.house.client.post("/", json=body).json()
    assert "task" in served.house.client.post("/message:send", json=given).json()
