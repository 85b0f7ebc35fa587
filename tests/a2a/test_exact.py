"""Whole numbers that no double holds: shown as they are to whoever approves a call, and never run as another one."""

import json
from typing import Any

import pytest

from perdure import Call, tool
from perdure.a2a.exact import EXACT_MAX, doubtful, shown
from perdure.a2a.extension import URI
from perdure.cli.client.giving import given
from perdure.cli.questions import approval, edited
from perdure.core.ports import ToolPort
from perdure.testing import call, say
from tests.a2a.desk import Desk, desk, sending
from tests.a2a.specified import state
from tests.temporal.bench import Bench
from tests.temporal.outside import Outside

ACCOUNT = 1_234_567_890_123_456_789
OTHER = 1_234_567_890_123_456_788
CALL = {"account": ACCOUNT, "amount": 500}


def test_what_a_struct_would_falsify_is_shown_in_digits() -> None:
    given: dict[str, Any] = {"a": [ACCOUNT, -ACCOUNT, EXACT_MAX], "b": {"c": 1e300, "d": True, "e": "x"}}
    assert shown(given) == {"a": [str(ACCOUNT), f"-{ACCOUNT}", EXACT_MAX], "b": {"c": 1e300, "d": True, "e": "x"}}


def test_what_may_have_been_another_number_is_found_by_its_place() -> None:
    came: dict[str, Any] = {"a": [1.0, float(EXACT_MAX + 1)], "b": {"c": -1e300, "d": 1.5, "e": float(EXACT_MAX)}}
    assert list(doubtful(came, "data")) == ["data.a[1]", "data.b.c"]


def paying(outside: Outside) -> ToolPort:
    @tool(effect="once", ask=True)
    async def pay(account: int, amount: int, call: Call) -> str:
        """Pay."""
        outside.note(f"pay {amount} to {account}", call.idempotency_key)
        return "paid"

    return pay


async def asked(client: Desk) -> tuple[str, dict[str, Any]]:
    task = await client.send()
    (question,) = task["status"]["message"]["metadata"][URI]["questions"]
    return task["id"], question


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_an_approver_sees_the_exact_number_and_an_edit_cannot_run_another(bench: Bench) -> None:
    agent = bench.agent(call("pay", CALL), say("done"), tools=[paying(bench.outside)])
    async with bench.app(agent) as app, desk(app) as client:
        task_id, question = await asked(client)
        assert question["arguments"] == {"account": str(ACCOUNT), "amount": 500}
        assert json.loads(question["argumentsJson"]) == CALL
        edit: dict[str, Any] = {"approve": True, "arguments": {"account": ACCOUNT, "amount": 50}}
        wrong = sending(message_id="m-2", taskId=task_id, parts=[{"data": edit}])
        refused = (await client.rpc("SendMessage", wrong))["error"]["message"]
        assert "message.parts[0].data.arguments.account: is a whole number beyond 9007199254740991" in refused
        assert "as a text part that is JSON" in refused
        done = await client.send(json.dumps(edit), message_id="m-3", taskId=task_id)
        assert state(done) == "COMPLETED"
        await bench.sound(app.task(task_id), app.store)
    assert [noted.what for noted in bench.outside.all()] == [f"pay 50 to {ACCOUNT}"]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_an_edit_from_the_command_line_is_exact_from_end_to_end(bench: Bench) -> None:
    agent = bench.agent(call("pay", CALL), say("done"), tools=[paying(bench.outside)])
    async with bench.app(agent) as app, desk(app) as client:
        task_id, question = await asked(client)
        text = approval(question["callDigest"], arguments=edited(f'{{"account": {OTHER}, "amount": 5}}', "--edit"))
        (part,) = given(text, "key", task_id=task_id, help_id=question["helpId"]).request.message.parts
        done = await client.send(part.text, message_id="m-2", taskId=task_id)
        assert state(done) == "COMPLETED"
        await bench.sound(app.task(task_id), app.store)
    assert [noted.what for noted in bench.outside.all()] == [f"pay 5 to {OTHER}"]
