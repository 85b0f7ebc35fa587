"""The operations of our extension on every binding: lanes, withdrawals, stops and the inbox from the outside."""

import asyncio

import pytest

from perdure import tool
from perdure.a2a import extension
from perdure.a2a.errors import RETRY_AFTER_S
from perdure.temporal import tasks as client_side
from perdure.testing import call, say
from tests.a2a.desk import Json, sending
from tests.a2a.doors import door, entry, key_of
from tests.a2a.laning import BINDINGS, Asking, Refused, asking
from tests.temporal.bench import Bench, Gate, event, rows_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

URI = extension.URI
ODD_ID = "m/4 ?:steer"
"""A message's id is its sender's own affair."""


async def send(ask: Asking, text: str, message_id: str, lane: str = "", key: str = "", **message: object) -> Json:
    fields = {"metadata": {URI: {"lane": lane}}} if lane else {}
    params = sending(text, wait=False, message_id=message_id, **fields, **message)
    task: Json = (await ask.rpc("SendMessage", params, key))["task"]
    return task


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_run_is_talked_to_while_it_works(bench: Bench, binding: str) -> None:
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), *([say("done")] * 4), tools=[held], after_answer="input_required")
    async with bench.app(agent) as app, asking(app, binding) as ask:
        task = await send(ask, "go", "m-1")
        named = {"taskId": task["id"]}
        handle = app.task(task["id"])
        await event(handle, "tool.started")
        await gate.wait_reached()
        await send(ask, "later", "m-2", "queue", **named)
        await send(ask, "much later", "m-3", "queue", **named)
        await send(ask, "last", ODD_ID, "queue", **named)

        moved = await ask(extension.STEER, id=task["id"], messageId=ODD_ID)
        await ask(extension.WITHDRAW, id=task["id"], messageId="m-2")
        inbox = await ask(extension.INBOX, id=task["id"])
        assert [(each["messageId"], each["lane"], each["runnable"]) for each in inbox["messages"]] == [
            (ODD_ID, "steer", True),
            ("m-3", "queue", True),
        ]
        assert inbox["messages"][0]["tail"] == moved["generation"] > inbox["messages"][0]["admitted"]

        assert (await ask(extension.STOP, id=task["id"]))["stopped"] is True
        ended = await event(handle, "run.ended", end="stopped")
        assert (await ask(extension.STOP, id=task["id"]))["stopped"] is False
        inbox = await ask(extension.INBOX, id=task["id"])
        assert int(inbox["generation"]) >= ended.number
        assert [each["runnable"] for each in inbox["messages"]] == [False, False]

        for name in (extension.STEER, extension.WITHDRAW):
            for gone in ("m-1", "m-2", "m-none"):
                with pytest.raises(Refused) as refused:
                    await ask(name, id=task["id"], messageId=gone)
                assert (refused.value.fields, refused.value.code) == (["messageId"], "message_not_waiting")

        await ask(extension.STEER, id=task["id"], messageId="m-3")
        await event(handle, "run.ended", end="answered")
        assert (await ask(extension.INBOX, id=task["id"])).get("messages", []) == []
        stored = await bench.sound(handle, app.store)
    promoted = [row.data["message_id"] for row in rows_of(stored, "message.promoted")]
    assert promoted == ["m-1", ODD_ID, "m-3"]


@pytest.mark.parametrize("binding", BINDINGS)
async def test_what_is_missing_is_named_and_a_task_that_ended_says_so(bench: Bench, binding: str) -> None:
    async with bench.app(bench.agent(say("done"))) as app, asking(app, binding) as ask:
        task = await send(ask, "go", "m-1")
        await app.task(task["id"]).result()
        for name in (extension.STOP, extension.STEER, extension.WITHDRAW):
            with pytest.raises(Refused, match="UNSUPPORTED_OPERATION"):
                await ask(name, id=task["id"], messageId="m-1")
        assert (await ask(extension.INBOX, id=task["id"])).get("messages", []) == []
        with pytest.raises(Refused, match="TASK_NOT_FOUND"):
            await ask(extension.INBOX, id="t-none")
        if binding != "http":  # there both stand in the path
            with pytest.raises(Refused) as refused:
                await ask(extension.STEER, id=task["id"])
            assert refused.value.fields == ["messageId"]


async def test_an_id_that_no_message_has_is_refused_and_takes_no_other_along(bench: Bench) -> None:
    """No JSON in UTF-8 can say half a surrogate pair: sent on, it would have its whole batch refused."""
    agent = bench.agent(call("ask_participant", {"question": "Who?"}), say("done"))
    async with bench.app(agent) as app, asking(app, "jsonrpc") as ask:
        task = await send(ask, "go", "m-1")
        await event(app.task(task["id"]), "help.requested")
        await send(ask, "later", "m-2", "queue", taskId=task["id"])

        async def refused(name: str, message_id: str) -> tuple[list[str], str]:
            with pytest.raises(Refused) as found:
                await ask(name, id=task["id"], messageId=message_id)
            return found.value.fields, found.value.code

        for name in (extension.STEER, extension.WITHDRAW):
            odd = [refused(name, each) for each in ("m\ud800", "m\0", "m" * 129)]
            moving = asyncio.create_task(ask(extension.STEER, id=task["id"], messageId="m-2"))
            assert await asyncio.gather(*odd) == [(["messageId"], "invalid_input")] * 3
            assert int((await moving)["generation"]) > 0


@pytest.mark.parametrize("wrong", [["steer"], {"x": 1}, "fast", 1, True, ""])
async def test_what_is_no_lane_is_refused_by_name(bench: Bench, wrong: object) -> None:
    async with bench.app(bench.agent(), worker=False) as app, asking(app, "jsonrpc") as ask:
        task = await send(ask, "go", "m-1")
        for field in ("lane", "helpId"):
            if field == "helpId" and isinstance(wrong, str):
                continue
            params = sending("more", message_id="m-2", taskId=task["id"], metadata={URI: {field: wrong}})
            with pytest.raises(Refused) as refused:
                await ask.rpc("SendMessage", params)
            assert refused.value.fields == [f"message.metadata.{field}"]


@pytest.mark.parametrize("binding", BINDINGS)
async def test_another_ones_task_is_not_there_and_who_shows_nothing_does_not_come_in(
    bench: Bench, binding: str
) -> None:
    agent = bench.agent(call("ask_participant", {"question": "Who?"}), say("done"))
    async with door(bench, agent, entry(AUTH="keys")) as (app, _), asking(app, binding) as ask:
        alice, bob = await key_of(app, "alice"), await key_of(app, "bob")
        task = await send(ask, "go", "m-1", key=alice)
        await event(app.task(task["id"]), "help.requested")
        names = (extension.STOP, extension.STEER, extension.WITHDRAW, extension.INBOX)
        for name in names:
            for key, reason in ((bob, "TASK_NOT_FOUND"), ("", "UNAUTHENTICATED")):
                with pytest.raises(Refused, match=reason):
                    await ask(name, key, id=task["id"], messageId="m-1")
        assert (await ask(extension.STOP, alice, id=task["id"]))["stopped"] is True


@pytest.mark.parametrize("binding", BINDINGS)
async def test_without_a_worker_it_is_said_when_to_come_back(
    bench: Bench, binding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_side, "ANSWER_WITHIN_S", 0.3)
    async with bench.app(bench.agent(), worker=False) as app, asking(app, binding) as ask:
        task = await send(ask, "go", "m-1")
        with pytest.raises(Refused, match="SERVICE_UNAVAILABLE"):
            await ask(extension.STOP, id=task["id"])
        (waiting,) = (await ask(extension.INBOX, id=task["id"]))["messages"]  # nobody took it up yet, and it is there
        assert (waiting["messageId"], waiting["lane"], waiting["runnable"]) == ("m-1", "queue", True)
        assert (waiting["admitted"], waiting["tail"]) == ("0", "0")
        if binding == "http":
            answer = await ask.http.post(f"/tasks/{task['id']}:stop")
            assert (answer.status_code, int(answer.headers["Retry-After"])) == (503, RETRY_AFTER_S)


async def test_the_card_names_the_operations(bench: Bench) -> None:
    async with bench.app(bench.agent(say("done"))) as app, asking(app, "http") as ask:
        card = (await ask.http.get("/.well-known/agent-card.json")).json()
    (ours,) = [each for each in card["capabilities"]["extensions"] if each["uri"] == URI]
    assert [each["method"] for each in ours["params"]["operations"]] == list(extension.PATHS)


async def test_everything_else_is_answered_as_before(bench: Bench) -> None:
    async with bench.app(bench.agent(say("done"))) as app, asking(app, "jsonrpc") as ask:
        for body, code in (
            ({"jsonrpc": "2.0", "id": 1, "method": "perdure.None", "params": {}}, -32601),
            ({"jsonrpc": "1.0", "id": 1, "method": extension.STOP, "params": {}}, -32600),
            ({"jsonrpc": "2.0", "id": True, "method": extension.STOP, "params": {}}, -32600),
            ({"jsonrpc": "2.0", "id": 1, "method": extension.STOP, "params": []}, -32602),
            ({"jsonrpc": "2.0", "id": 1, "method": extension.STOP, "params": {"id": 7}}, -32602),
        ):
            answer = (await ask.http.post("/", json=body)).json()
            assert answer["error"]["code"] == code, body
