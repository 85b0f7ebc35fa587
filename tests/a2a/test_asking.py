"""Questions and approvals over A2A: what a client is shown of them, and the answers that it gives by message."""

from typing import Any

import pytest

from perdure import Call, tool
from perdure.a2a.extension import URI
from perdure.core.ports import ToolPort
from perdure.testing import call, calls, say
from tests.a2a.desk import desk, sending
from tests.a2a.specified import state
from tests.temporal.bench import Bench, event, results_of
from tests.temporal.outside import Outside

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"enum": ["S", "M"]}, "count": {"type": "integer", "minimum": 1}},
    "required": ["size", "count"],
}


def paying(outside: Outside) -> ToolPort:
    @tool(effect="once", ask="amount > 100")
    async def pay(amount: int, call: Call) -> str:
        """Pay."""
        outside.note(f"pay {amount}", call.idempotency_key)
        return f"paid {amount}"

    return pay


def questions(task: dict[str, Any]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = task["status"]["message"]["metadata"][URI]["questions"]
    return shown


def data(value: dict[str, Any]) -> dict[str, Any]:
    return {"parts": [{"data": value}]}


async def test_a_form_is_shown_and_answered_with_a_data_part(bench: Bench) -> None:
    asks = call("ask_participant", {"question": "Which?", "form": FORM, "expires_in_s": 3600})
    async with bench.app(bench.agent(asks, say("done"))) as app, desk(app) as client:
        task = await client.send()
        (shown,) = questions(task)
        assert (shown["kind"], shown["text"], shown["schema"]) == ("question", "Which?", FORM)
        assert shown["expiresAtMs"] > 0
        wrong = await client.rpc("SendMessage", sending(message_id="m-2", taskId=task["id"], **data({"size": "XL"})))
        assert 'count: missing; size: must be one of "S", "M", got "XL"' in wrong["error"]["message"]
        done = await client.send(message_id="m-3", taskId=task["id"], **data({"size": "S", "count": 2}))
        assert state(done) == "COMPLETED"
        stored = await bench.sound(app.task(task["id"]), app.store)
    assert results_of(stored)[0].result.text == '{"count":2,"size":"S"}'


async def test_approvals_are_shown_and_given_by_the_caller(bench: Bench) -> None:
    asks = calls(call("pay", {"amount": 150}), call("pay", {"amount": 151}))
    agent = bench.agent(asks, say("done"), tools=[paying(bench.outside)])
    async with bench.app(agent) as app, desk(app) as client:
        task = (await client.result("SendMessage", sending(), x_name="alice"))["task"]
        first, second = questions(task)
        assert (first["kind"], first["tool"], first["arguments"]) == ("approval", "pay", {"amount": 150})
        assert first["choices"] == ["approve", "decline"]
        metadata = {URI: {"helpId": second["helpId"]}}
        decline = sending("decline: once is enough", message_id="m-2", taskId=task["id"], metadata=metadata, wait=False)
        await client.result("SendMessage", decline, x_name="alice")
        given = data({"approve": True, "arguments": {"amount": 50}, "digest": second["callDigest"]})
        metadata = {URI: {"helpId": first["helpId"]}}
        wrong = sending(message_id="m-3", taskId=task["id"], metadata=metadata, **given)
        refused = await client.rpc("SendMessage", wrong, x_name="alice")
        assert "digest: is of another call" in refused["error"]["message"]
        given["parts"][0]["data"]["digest"] = first["callDigest"]
        right = sending(message_id="m-4", taskId=task["id"], metadata=metadata, **given)
        done = (await client.result("SendMessage", right, x_name="alice"))["task"]
        assert state(done) == "COMPLETED"
        late = sending("approve", message_id="m-5", taskId=task["id"], metadata=metadata)
        assert "error" in await client.rpc("SendMessage", late, x_name="alice")
        answered = await event(app.task(task["id"]), "help.answered", verdict="approved")
        assert (answered.data["by"], answered.data["arguments"]) == ("alice", {"amount": 50})
        stored = await bench.sound(app.task(task["id"]), app.store)
    assert [result.result.text for result in results_of(stored)] == [
        'A person approved this call with other arguments: {"amount":50}.\npaid 50',
        "Declined by alice: once is enough. It was not begun.",
    ]
    assert [noted.what for noted in bench.outside.all()] == ["pay 50"]
