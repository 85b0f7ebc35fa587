"""Every operation over a real workflow and store: what it returns, and how it says no. Sections are A2A 1.0's."""

import asyncio
import base64

import pytest
from temporalio.api.enums.v1 import EventType

from perdure import Agent, App, TaskEvent, tool
from perdure.a2a.extension import URI
from perdure.app.offer import Offer
from perdure.core.ports import ToolPort
from perdure.testing import call, calls, fail, last_user, say
from tests.a2a.desk import Desk, Json, desk, reason_of, sending
from tests.temporal.bench import Bench, event, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PUSH = {"taskId": "t-1", "id": "p-1", "url": "https://example.org/"}
PUSHING = ("Create", "Get", "Delete")


def state(task: Json) -> str:
    name: str = task["status"]["state"]
    return name.removeprefix("TASK_STATE_")


async def test_a_message_comes_back_as_it_was_sent(bench: Bench) -> None:
    parts: list[Json] = [
        {"text": "look", "mediaType": "text/markdown", "metadata": {"a": 1}},
        {"data": {"n": [1, 2.5, None]}},
        {"raw": base64.b64encode(b"\x89PNG").decode(), "mediaType": "image/png", "filename": "a.png"},
        {"url": "https://example.org/a.pdf", "mediaType": "application/pdf"},
        {"text": "x" * 70_000},
    ]
    extra: Json = {"metadata": {"who": "me", "n": 3}, "extensions": ["urn:x"], "referenceTaskIds": ["t-old"]}
    async with bench.app(bench.agent(say("seen"))) as app, desk(app) as client:
        task = await client.send(parts=parts, **extra)
        (message,) = (await client.task(task["id"]))["history"]
    sent = {**sending(parts=parts, **extra)["message"], "taskId": task["id"], "contextId": task["contextId"]}
    assert message == sent


async def test_history_length(bench: Bench) -> None:
    """3.2.4: unset is all, 0 is none, n the latest n, less than 0 is an error."""
    agent = bench.agent(say("one"), say("two"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        first = await client.send("a")
        task = await client.send("b", message_id="m-2", taskId=first["id"])
        assert (state(first), state(task)) == ("INPUT_REQUIRED", "INPUT_REQUIRED")
        texts = [message["parts"][0]["text"] for message in task["history"]]
        assert texts == ["a", "one", "b"]
        assert task["status"]["message"]["parts"] == [{"text": "two"}]
        assert "history" not in await client.task(task["id"], historyLength=0)
        assert [m["messageId"] for m in (await client.task(task["id"], historyLength=1))["history"]] == ["m-2"]
        assert await client.reason("GetTask", {"id": task["id"], "historyLength": -1}) == "INVALID_PARAMS"
        assert await client.reason("SendMessage", _with_history(-1)) == "INVALID_PARAMS"


def _with_history(length: int) -> Json:
    return {**sending(), "configuration": {"historyLength": length}}


async def test_ids_of_tasks_and_contexts(bench: Bench) -> None:
    """3.4: a task's context is taken, another is an error; no task is made under a client's id; an end is an end."""
    async with bench.app(bench.agent(*[say("yes")] * 4, after_answer="input_required")) as app, desk(app) as client:
        task = await client.send(contextId="mine")
        assert task["contextId"] == "mine"
        assert (await client.send(message_id="m-2", taskId=task["id"]))["contextId"] == "mine"
        other = sending(message_id="m-3", taskId=task["id"], contextId="theirs")
        assert await client.reason("SendMessage", other) == "INVALID_PARAMS"
        assert await client.reason("SendMessage", sending(taskId="t-none")) == "TASK_NOT_FOUND"
        assert await client.reason("GetTask", {"id": "t-none"}) == "TASK_NOT_FOUND"
        again = await client.send(contextId="mine")
        assert again["id"] != task["id"]
        assert state(await client.result("CancelTask", {"id": task["id"]})) == "CANCELED"
        late = sending("more", message_id="m-4", taskId=task["id"])
        assert await client.reason("SendMessage", late) == "UNSUPPORTED_OPERATION"
        # What it took in before its end it still knows (P1).
        assert (await client.send(message_id="m-2", taskId=task["id"]))["id"] == task["id"]


async def test_a_question_is_answered_by_a_message_once(bench: Bench) -> None:
    agent = bench.agent(call("ask_participant", {"question": "Which one?"}), say("done"))
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        assert state(task) == "INPUT_REQUIRED"
        assert task["status"]["message"]["parts"] == [{"text": "Which one?"}]
        file = [{"raw": "aGk=", "mediaType": "image/png"}]
        wordless = sending(message_id="m-2", taskId=task["id"], parts=file)
        assert await client.reason("SendMessage", wordless) == "INVALID_PARAMS"
        answered = await client.send("the red one", message_id="m-3", taskId=task["id"])
        assert state(answered) == "COMPLETED"
        texts = [(message["role"], message["parts"][0]["text"]) for message in answered["history"]]
        assert texts == [("ROLE_USER", "hello"), ("ROLE_AGENT", "Which one?"), ("ROLE_USER", "the red one")]
        again = await client.send("the red one", message_id="m-3", taskId=task["id"])
        assert again == answered
        conflict = sending("the blue one", message_id="m-3", taskId=task["id"])
        assert await client.reason("SendMessage", conflict) == "INVALID_PARAMS"
        await bench.sound(app.task(task["id"]), app.store)


async def test_an_answer_to_one_of_two_questions_returns_and_shows_the_other(bench: Bench) -> None:
    """3.2.2: the task waits again when the answer is taken, though its state has not changed; whichever is first."""
    questions = calls(*(call("ask_participant", {"question": text}) for text in ("Which one?", "When?")))
    async with bench.app(bench.agent(questions, say("done"))) as app, desk(app) as client:
        task = await client.send()
        asked = [each.help_id for each in await _first(app, task["id"], "help.requested", 2)]
        fields = {URI: {"helpId": asked[1]}}
        after_one = await client.send("today", message_id="m-2", taskId=task["id"], metadata=fields)
        assert (state(after_one), after_one["status"]["message"]["parts"]) == (
            "INPUT_REQUIRED",
            [{"text": "Which one?"}],
        )
        assert state(await client.send("the red one", message_id="m-3", taskId=task["id"])) == "COMPLETED"
        # Sent again it is answered as the task is now, not as it was then.
        again = await client.send("today", message_id="m-2", taskId=task["id"], metadata=fields)
        assert state(again) == "COMPLETED"
        await bench.sound(app.task(task["id"]), app.store)


async def _first(app: App, task_id: str, kind: str, count: int) -> list[TaskEvent]:
    """Return a task's first `count` events of that kind."""
    return [await event(app.task(task_id), kind, count=number) for number in range(1, count + 1)]


async def test_cancel(bench: Bench) -> None:
    """3.1.5: what ran is stopped and the task is CANCELED; what has ended cannot be canceled."""
    hold = _held()
    async with bench.app(bench.agent(call("hold"), say("never"), tools=[hold])) as app, desk(app) as client:
        task = await client.send(wait=False)
        await until(lambda: _is_working(client, task["id"]))
        assert state(await client.result("CancelTask", {"id": task["id"]})) == "CANCELED"
        assert await client.reason("CancelTask", {"id": task["id"]}) == "TASK_NOT_CANCELABLE"
        assert await client.reason("CancelTask", {"id": "t-none"}) == "TASK_NOT_FOUND"


def _held() -> ToolPort:
    @tool(effect="read")
    async def hold() -> str:
        """Never return."""
        await asyncio.Event().wait()
        return ""

    return hold


async def _is_working(client: Desk, task_id: str) -> bool:
    return state(await client.task(task_id)) == "WORKING"


async def test_an_unanswered_end_says_why_and_the_next_message_goes_on(bench: Bench) -> None:
    agent = bench.agent(lambda said: fail("the provider says no") if last_user(said) == "hello" else say("works"))
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        assert state(task) == "INPUT_REQUIRED"
        assert "the provider says no" in task["status"]["message"]["parts"][0]["text"]
        assert state(await client.send("again", message_id="m-2", taskId=task["id"])) == "COMPLETED"


async def test_a_stream_begins_with_the_task_and_misses_no_number(bench: Bench) -> None:
    """3.1.2, 3.1.6 and P6: the task, then every event; it goes on after any, also of a task that has ended."""
    agent = bench.agent(call("ask_participant", {"question": "Sure?"}), say("done"))
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        number = int(task["metadata"][URI]["generation"])
        params = sending("yes", message_id="m-2", taskId=task["id"])
        first, *rest = await client.stream("SendStreamingMessage", params)
        assert (first[0], list(first[1])) == (number, ["task"])
        last = rest[-1][0]
        assert [each for each, _ in rest] == list(range(number + 1, last + 1))
        assert [int(_metadata(event)["generation"]) for _, event in rest] == [each for each, _ in rest]
        assert rest[-1][1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        for after in (0, 3, last - 1):
            events = await client.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID=str(after))
            assert [each for each, _ in events] == list(range(after, last + 1))
        ended = {"id": task["id"]}
        assert await client.reason("SubscribeToTask", ended) == "UNSUPPORTED_OPERATION"
        assert await client.reason("SubscribeToTask", ended, Last_Event_ID=str(last)) == "UNSUPPORTED_OPERATION"
        assert await client.reason("SubscribeToTask", ended, Last_Event_ID="x") == "INVALID_PARAMS"
        assert await client.reason("SubscribeToTask", {"id": "t-none"}) == "TASK_NOT_FOUND"


async def test_the_task_as_of_a_number_and_what_follows_fit(bench: Bench) -> None:
    """Whatever the number, a client that keeps the latest status and artifact is where the server is at the end."""

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "seen"

    agent = bench.agent(
        call("look", text="A moment."), call("ask_participant", {"question": "So?"}), say("done"), tools=[look]
    )
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        await client.send("so", message_id="m-2", taskId=task["id"])
        whole = await client.task(task["id"])
        for after in range(int(whole["metadata"][URI]["generation"])):
            events = await client.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID=str(after))
            kept: Json = events[0][1]["task"]
            for _, event in events[1:]:
                if "statusUpdate" in event:
                    kept["status"] = event["statusUpdate"]["status"]
                else:
                    kept.setdefault("artifacts", []).append(event["artifactUpdate"]["artifact"])
            assert (kept["status"], kept["artifacts"]) == (whole["status"], whole["artifacts"])


def _metadata(event: Json) -> Json:
    (update,) = event.values()
    metadata: Json = update["metadata"][URI]
    return metadata


async def test_lists(bench: Bench) -> None:
    """3.1.4: the newest status first, filters, pages with tokens that are always there, artifacts only when asked."""
    async with bench.app(bench.agent(*[say("yes")] * 5)) as app, desk(app) as client:
        sent = [(await client.send(contextId="c-a" if i % 2 else "c-b"))["id"] for i in range(5)]
        newest_first = sent[::-1]
        everything = await client.result("ListTasks", {})
        assert [task["id"] for task in everything["tasks"]] == newest_first
        assert (everything["nextPageToken"], everything["pageSize"], everything["totalSize"]) == ("", 50, 5)
        assert not any("artifacts" in task for task in everything["tasks"])
        shown = await client.result("ListTasks", {"includeArtifacts": True, "historyLength": 0})
        assert all(task["artifacts"] and not task.get("history") for task in shown["tasks"])
        pages: list[list[str]] = []
        token = ""
        while not pages or token:
            page = await client.result("ListTasks", {"pageSize": 2, "pageToken": token})
            pages.append([task["id"] for task in page["tasks"]])
            token = page["nextPageToken"]
        assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:]]
        of_a = await client.result("ListTasks", {"contextId": "c-a", "status": "TASK_STATE_COMPLETED"})
        assert [task["id"] for task in of_a["tasks"]] == [sent[3], sent[1]]
        assert (await client.result("ListTasks", {"status": "TASK_STATE_WORKING"}))["totalSize"] == 0
        assert (await client.result("ListTasks", {"status": "TASK_STATE_REJECTED"}))["tasks"] == []
        since = everything["tasks"][1]["status"]["timestamp"]
        late = await client.result("ListTasks", {"statusTimestampAfter": since})
        assert [task["id"] for task in late["tasks"]] == newest_first[:2]
        for wrong in (
            {"pageSize": 0},
            {"pageSize": 101},
            {"pageToken": "x"},
            {"status": "DONE"},
            {"historyLength": -1},
        ):
            assert await client.reason("ListTasks", wrong) == "INVALID_PARAMS", wrong
        answer = await client.http.get("/tasks", params={"pageSize": "2", "status": "TASK_STATE_DONE"})
        assert (answer.status_code, reason_of(answer.json()["error"]["details"])) == (400, "INVALID_PARAMS")


async def test_a_task_of_somebody_else_is_not_there(bench: Bench) -> None:
    """13.1: neither read, followed, written to, canceled nor listed; a key and a context are one's own."""
    async with bench.app(bench.agent(*[say("yes")] * 3, after_answer="input_required")) as app, desk(app) as client:
        mine = (await client.result("SendMessage", sending(contextId="c-mine"), x_name="ann", idempotency_key="k"))[
            "task"
        ]
        theirs = {"x_name": "bob"}
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            assert await client.reason(method, {"id": mine["id"]}, **theirs) == "TASK_NOT_FOUND"
        assert await client.reason("SendMessage", sending(taskId=mine["id"]), **theirs) == "TASK_NOT_FOUND"
        assert await client.reason("SendMessage", sending(contextId="c-mine"), **theirs) == "INVALID_PARAMS"
        assert (await client.result("ListTasks", {}, **theirs))["tasks"] == []
        assert [t["id"] for t in (await client.result("ListTasks", {}, x_name="ann"))["tasks"]] == [mine["id"]]
        other = (await client.result("SendMessage", sending(), x_name="bob", idempotency_key="k"))["task"]
        assert other["id"] != mine["id"]


async def test_a_first_message_is_one_task_under_its_key_and_a_new_one_without(bench: Bench) -> None:
    async with bench.app(bench.agent(*[say("yes")] * 4)) as app, desk(app) as client:
        key = {"idempotency_key": "order-7"}
        tries = await asyncio.gather(*(client.result("SendMessage", sending(), **key) for _ in range(4)))
        assert len({each["task"]["id"] for each in tries}) == 1
        in_metadata = await client.send(metadata={URI: {"idempotencyKey": "order-8"}})
        assert (await client.send(metadata={URI: {"idempotencyKey": "order-8"}}))["id"] == in_metadata["id"]
        assert (await client.send())["id"] != (await client.send())["id"]
        answer = await client.rpc("SendMessage", sending("other"), **key)
        assert answer["error"]["data"][0]["metadata"]["code"] == "message_conflict"
        assert await client.reason("SendMessage", sending(), idempotency_key=" ") == "INVALID_PARAMS"
        assert (await client.result("ListTasks", {}))["totalSize"] == 4


async def test_many_messages_at_once_arrive_once_each_in_few_updates(bench: Bench) -> None:
    async with bench.app(bench.agent(*[say("yes")] * 30, after_answer="input_required")) as app, desk(app) as client:
        task = await client.send()
        names = [f"m-{number}" for number in range(10, 30)]
        sends = [client.send(name, wait=False, message_id=name, taskId=task["id"]) for name in names]
        await asyncio.gather(*sends)
        history = (await client.task(task["id"]))["history"]
        (record,) = await bench.histories(task["id"])
    assert sorted(message["messageId"] for message in history if message["messageId"] in names) == names
    updates = [e for e in record.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED]
    assert len(updates) < len(names)


async def test_versions(bench: Bench) -> None:
    """3.6: by header and by query; none is 0.3; 1.7 is refused; 0.3 clients are served."""
    async with bench.app(bench.agent(*[say("yes")] * 4)) as app, desk(app) as client:
        assert await client.reason("ListTasks", {}, A2A_Version="1.7") == "VERSION_NOT_SUPPORTED"
        assert await client.reason("ListTasks", {}, A2A_Version="") == "VERSION_NOT_SUPPORTED"
        assert (await client.result("ListTasks", {}, A2A_Version="1.0.3"))["tasks"] == []
        for version, status in (("1.0", 200), ("1.7", 400), ("", 400)):
            answer = await client.http.get("/tasks", params={"A2A-Version": version}, headers={"A2A-Version": ""})
            assert answer.status_code == status, version
        old = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
        task = await client.result("message/send", {"message": old}, A2A_Version="")
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        got = await client.result("tasks/get", {"id": task["id"]}, A2A_Version="0.3")
        assert got["artifacts"][0]["parts"][0]["text"] == "yes"


async def test_what_is_not_there_says_so(bench: Bench) -> None:
    """3.3.4: push notifications and the extended card, as the card says."""
    silent = Offer().without(["push"])
    async with bench.app(bench.agent(say("yes"))) as app, desk(app, silent) as client:
        for what in PUSHING:
            name = f"{what}TaskPushNotificationConfig"
            assert await client.reason(name, PUSH) == "PUSH_NOTIFICATION_NOT_SUPPORTED"
        listing = await client.reason("ListTaskPushNotificationConfigs", {"taskId": "t-1"})
        assert listing == "PUSH_NOTIFICATION_NOT_SUPPORTED"
        configured = {**sending(), "configuration": {"taskPushNotificationConfig": PUSH}}
        assert await client.reason("SendMessage", configured) == "PUSH_NOTIFICATION_NOT_SUPPORTED"
        assert await client.reason("GetExtendedAgentCard", {}) == "UNSUPPORTED_OPERATION"
        strange = sending(parts=[{"raw": "aGk=", "mediaType": "application/x-strange"}])
        assert await client.reason("SendMessage", strange) == "CONTENT_TYPE_NOT_SUPPORTED"
        wrongs: list[list[Json]] = [[], [{"text": " "}], [{}], [{"url": "file:///etc/passwd"}]]
        for wrong in wrongs:
            assert await client.reason("SendMessage", sending(parts=wrong)) == "INVALID_PARAMS", wrong
        assert await client.reason("SendMessage", sending(role="ROLE_AGENT")) == "INVALID_PARAMS"
        assert (await client.rpc("Nothing", {}))["error"]["code"] == -32601


async def test_the_card_says_what_is_there(bench: Bench) -> None:
    """8.2, 8.6: interfaces, capabilities, cache headers."""
    agent: Agent = bench.agent(say("yes"), description="Ships things.")
    async with bench.app(agent) as app, desk(app) as client:
        answer = await client.http.get("/.well-known/agent-card.json")
        assert "max-age" in answer.headers["Cache-Control"]
        same = await client.http.get("/.well-known/agent-card.json", headers={"If-None-Match": answer.headers["ETag"]})
        assert same.status_code == 304
    card = answer.json()
    assert (card["name"], card["description"], card["skills"][0]["id"]) == (agent.id, "Ships things.", agent.id)
    interfaces = {(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]}
    assert interfaces == {(binding, version) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")}
    assert card["capabilities"]["streaming"]
    assert card["capabilities"]["pushNotifications"]
    assert card["capabilities"]["extensions"][0]["uri"] == URI
