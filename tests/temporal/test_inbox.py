"""The inbox: what was acknowledged is there once, a resend changes nothing, and what cannot be taken says why (P1)."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import WorkflowFailureError
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure import tool
from perdure.app.messages import new_id
from perdure.core import limits
from perdure.core.content import Message, TextPart, UserEntry
from perdure.core.errors import InvalidInput, MessageConflict, RunFailed, TaskClosed, TaskNotFound, Unavailable
from perdure.core.log import Batch, TaskHeader
from perdure.core.ports import ToolPort
from perdure.temporal import tasks as client_side
from perdure.temporal.contracts import TASK_WORKFLOW, InboxItem, InboxReply, InboxRequest, Receipt, TaskStart
from perdure.testing import call, say
from tests.temporal.bench import Bench, Gate, entries_of, event, item, logged, message, rows_of, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_resend_changes_nothing_and_other_content_is_refused(bench: Bench) -> None:
    agent = bench.agent(*([say("yes")] * 5), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-1")
        number = await task.send("second", message_id="m-2")
        await event(task, "run.ended", after=number)
        last = (await bench.tasks.state(task.id)).last_number
        assert await task.send("second", message_id="m-2") == number
        assert await task.send("first", message_id="m-1") == 3
        with pytest.raises(MessageConflict):
            await task.send("changed", message_id="m-2")
        assert (await bench.tasks.state(task.id)).last_number == last
        stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "message.admitted")) == 2


async def test_an_id_from_long_ago_is_looked_up_in_the_store(bench: Bench) -> None:
    agent = bench.agent(*([say("yes")] * 3), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-first")
        await event(task, "run.ended")
        many = [item(f"m-{index}", lane="steer") for index in range(limits.MESSAGE_IDS_REMEMBERED)]
        reply = await bench.inbox(task.id, *many)
        assert all(receipt.number is not None for receipt in reply.receipts)
        assert all(seen[0] != "m-first" for seen in (await bench.tasks.state(task.id)).seen)
        last = (await event(task, "run.ended", count=2)).number
        assert await task.send("first", message_id="m-first") == 3
        with pytest.raises(MessageConflict):
            await task.send("changed", message_id="m-first")
        assert await task.send("new", message_id="m-new") > last
        stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "message.admitted")) == limits.MESSAGE_IDS_REMEMBERED + 2


async def test_a_batch_gets_a_receipt_each_in_order(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "ok"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-1")
        await gate.wait_reached()
        reply = await bench.inbox(
            task.id, item("m-2", "b"), item("m-1", "other"), item("m-2", "b"), item("m-3", "c"), item("m-2", "not b")
        )
        codes = [(receipt.message_id, receipt.code) for receipt in reply.receipts]
        assert codes == [
            ("m-2", None),
            ("m-1", "message_conflict"),
            ("m-2", None),
            ("m-3", None),
            ("m-2", "message_conflict"),
        ]
        assert reply.receipts[0].number == reply.receipts[2].number
        # R3: acknowledged is durable.
        for name in ("m-2", "m-3"):
            assert await app.store.admission(task.id, name) is not None
        gate.open.set()
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    said = [entry.message.message_id for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert said == ["m-1", "m-2", "m-3"]


async def test_many_senders_at_once_lose_nothing(bench: Bench) -> None:
    agent = bench.agent(*([say("yes")] * 60), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-0")
        numbers = await asyncio.gather(*(task.send("more", message_id=f"m-{index}") for index in range(1, 9)))
        assert len(set(numbers)) == 8

        async def all_said() -> bool:
            state = await bench.tasks.state(task.id)
            return not state.inbox and state.run is None

        await until(all_said)
        stored = await bench.sound(task, app.store)
    said = [entry.message.message_id for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert sorted(said) == sorted(f"m-{index}" for index in range(9))


async def test_a_full_inbox_refuses_and_says_so(bench: Bench) -> None:
    agent = bench.agent(call("ask_participant", {"question": "Who?"}), say("done"))
    async with bench.app(agent) as app:
        task = await app.send("first")
        question = await event(task, "help.requested")
        reply = await bench.inbox(task.id, *(item(f"m-{n}") for n in range(limits.INBOX_PENDING_MAX + 1)))
        assert [receipt.number is None for receipt in reply.receipts] == [False] * limits.INBOX_PENDING_MAX + [True]
        assert "waiting" in str(reply.receipts[-1].problem)
        # An answer waits for nothing: it is taken, by message too.
        (taken,) = (await bench.inbox(task.id, item("m-answer", "me", answers=True))).receipts
        assert (taken.problem, taken.number is None) == (None, False)
        assert await task.result() == "done"
        (answered,) = rows_of(await bench.sound(task, app.store), "help.answered")
    assert answered.data["help_id"] == question.help_id


async def test_what_no_store_takes_is_refused_and_holds_nothing_up(bench: Bench) -> None:
    """Taken in, its row would be written again for ever, and with it every later one, a stop's fence too."""
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        many = InboxItem(message=Message(message_id="m-many", parts=(TextPart(text="x"),) * 65))
        reply = await bench.inbox(task.id, item("m\x00"), item("m" * 129), item(""), many, item("m-good"))
        assert [receipt.code for receipt in reply.receipts] == ["invalid_input"] * 4 + [None]
        gate.open.set()
        assert await task.result() == "done"
        await bench.sound(task, app.store)


async def test_a_terminal_task_takes_nothing(bench: Bench) -> None:
    agent = bench.agent(say("done"))
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-1")
        await task.result()
        before = len(await logged(app.store, task.id))
        with pytest.raises(TaskClosed):
            await task.send("more")
        with pytest.raises(TaskClosed):
            await bench.tasks.send(task.id, item("m-2"))
        for request in (task.stop(), task.cancel(), task.answer("x", "y")):
            with pytest.raises(TaskClosed):
                await request
        with pytest.raises(TaskNotFound):
            await bench.tasks.send("t-none", item("m-2"))
        assert len(await logged(app.store, task.id)) == before


async def test_a_terminal_task_in_the_store_starts_nothing_again(bench: Bench) -> None:
    """Temporal forgets a closed workflow; the store does not (P5)."""
    agent = bench.agent(call("note"), say("done"), tools=[noting(bench)])
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-1")
        await task.result()
        before = await logged(app.store, task.id)
        await bench.client.get_workflow_handle(task.id).result()  # the store knows of its end a moment earlier
        # Temporal itself refuses the id while it remembers it; once it has forgotten, this is what a resend starts.
        again = TaskStart(
            task_id=task.id,
            context_id=(await task.row()).header.context_id,
            agent=agent.spec(),
            messages=(message("m-1", "first"),),
        )
        handle = await bench.client.start_workflow(
            TASK_WORKFLOW,
            again,
            id=task.id,
            task_queue=bench.queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
        assert isinstance(failure.value.cause, ApplicationError)
        assert failure.value.cause.type == "diverged"
        assert await logged(app.store, task.id) == before
        assert bench.outside.count("note") == 1


async def test_an_id_that_only_the_store_remembers_is_refused_at_once(bench: Bench) -> None:
    """P1: nobody would ever hear what became of a message that was acknowledged under it."""
    header = TaskHeader(task_id=new_id("t"), context_id="c-old", agent_id=bench.queue, principal="")
    async with bench.app(bench.agent(say("never")), worker=False) as app:
        await app.store.write(Batch(task_id=header.task_id, header=header), at_ms=1)
        with pytest.raises(InvalidInput, match="exists already"):
            await app.send("first", task_id=header.task_id, context_id="c-old")
        with pytest.raises(TaskNotFound):
            await bench.tasks.state(header.task_id)


async def test_p1_what_was_acknowledged_is_there_before_a_worker_has_taken_it_up(bench: Bench) -> None:
    async with bench.app(bench.agent(), worker=False) as app:
        task = await app.send("first", message_id="m-1", context_id="c-1", principal="alice")
        inbox = await task.inbox()
        (waiting,) = inbox.runnable
        assert (inbox.number, waiting.message_id, waiting.lane, waiting.tail) == (0, "m-1", "queue", 0)
        row = await (await app.find(task.id)).row()
        assert (row.state, row.last_number, row.header.principal) == ("submitted", 0, "alice")
        assert row.created_at_ms > 0
        await app.store.write(Batch(task_id=task.id, header=row.header), at_ms=1)  # listed, and still without a log
        assert await task.inbox() == inbox
        for asked in (app.find("t-none"), app.task("t-none").row(), app.task("t-none").inbox()):
            with pytest.raises(TaskNotFound):
                await asked
    async with bench.app(bench.agent(say("done"))) as app:
        assert await app.task(task.id).result() == "done"
        assert (await app.task(task.id).inbox()).messages == ()


def noting(bench: Bench) -> ToolPort:
    @tool(effect="once")
    async def note() -> str:
        bench.outside.note("note")
        return "ok"

    return note


async def test_a_stop_that_found_no_worker_may_take_effect_when_one_comes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = bench.agent(*([say("yes")] * 3), after_answer="input_required")
    monkeypatch.setattr(client_side, "ANSWER_WITHIN_S", 0.3)
    async with bench.app(agent, worker=False) as app:
        task = await app.send("first", message_id="m-1")
        with pytest.raises(Unavailable):
            await task.stop()
        monkeypatch.undo()
        async with bench.app(agent) as working:
            row = await event(task, "run.stopped_before_start")
            with pytest.raises(RunFailed, match="stopped"):
                await working.task(task.id).result()
            await working.task(task.id).send("second", message_id="m-2")
            await event(task, "run.ended", after=row.number, end="answered")
            stored = await bench.sound(task, app.store)
    assert [row.data["message_id"] for row in rows_of(stored, "message.promoted")] == ["m-1", "m-2"]


# --- with no worker ---------------------------------------------------------------------------------------------


async def test_without_a_worker_a_message_is_unavailable_and_may_have_taken_effect(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = bench.agent(*([say("yes")] * 3), after_answer="input_required")
    monkeypatch.setattr(client_side, "ANSWER_WITHIN_S", 0.3)
    async with bench.app(agent, worker=False) as app:
        task = await app.send("first", message_id="m-1")
        with pytest.raises(Unavailable, match="perdure worker"):
            await task.send("second", message_id="m-2")
        monkeypatch.undo()
        async with bench.app(agent) as working:
            number = await working.task(task.id).send("second", message_id="m-2")
            assert await working.task(task.id).send("second", message_id="m-2") == number
            await event(task, "message.promoted", count=2)
            await event(task, "run.ended", after=number)
            stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "message.admitted")) == 2


async def test_early_messages_join_the_starts_own(bench: Bench) -> None:
    """Handlers run before `run`: what came with the very start is admitted in order, after the start's message."""
    agent = bench.agent(*([say("yes")] * 5), after_answer="input_required")
    async with bench.app(agent, worker=False) as app:
        task_id = await bench.start(agent)
        handle = bench.client.get_workflow_handle(task_id)
        sending = [
            asyncio.create_task(
                handle.execute_update(
                    "inbox",
                    InboxRequest(items=(item(name, lane="queue"),)),
                    id=name,
                    result_type=InboxReply,
                    rpc_timeout=timedelta(seconds=15),
                )
            )
            for name in ("m-a", "m-b")
        ]
        for name in ("m-a", "m-b"):  # the server holds them until a worker comes
            await until(partial(_is_held, bench, task_id, name))
        async with bench.app(agent) as working:
            replies = await asyncio.gather(*sending)
            assert {reply.receipts[0].number for reply in replies} == {4, 5}
            task = working.task(task_id)

            async def rests() -> bool:
                state = await bench.tasks.state(task_id)
                return not state.inbox and state.run is None

            await until(rests)
            stored = await bench.sound(task, app.store)
    said = [entry.message.message_id for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert said[0] == "m-first"
    assert sorted(said[1:]) == ["m-a", "m-b"]
    assert [row.kind for row in (each.event for each in stored)][:5] == [
        "task.created",
        "task.status",
        "message.admitted",
        "message.admitted",
        "message.admitted",
    ]


async def _is_held(bench: Bench, task_id: str, update_id: str) -> bool:
    """Whether the server has the update, which no worker has seen."""
    ref = UpdateRef(workflow_execution=WorkflowExecution(workflow_id=task_id), update_id=update_id)
    request = PollWorkflowExecutionUpdateRequest(namespace=bench.client.namespace, update_ref=ref)
    try:
        held = await bench.client.workflow_service.poll_workflow_execution_update(request)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return held.stage == UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED


async def test_p1_a_full_history_takes_nothing_in_until_it_is_continued(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal ends a workflow whose history is too large, and a tool may run for hours between two turns."""
    monkeypatch.setattr(limits, "HISTORY_BYTES_MAX", 400 * limits.KIB)
    gate = Gate()

    @tool(effect="read")
    async def hold() -> str:
        """Hold until the test lets go."""
        await gate.pass_through()
        return "held"

    agent = bench.agent(call("hold"), *([say("yes")] * 2), tools=[hold])
    parts = tuple(TextPart(text="x" * (50 * limits.KIB)) for _ in range(4))
    async with bench.app(agent) as app:
        task = await app.send("first", message_id="m-first")
        await gate.wait_reached()
        taken: list[str] = []
        receipt = Receipt(message_id="")
        for index in range(20):
            large = InboxItem(message=Message(message_id=f"m-{index}", parts=parts))
            (receipt,) = (await bench.inbox(task.id, large)).receipts
            if receipt.number is None:
                break
            taken.append(receipt.message_id)
        assert 0 < len(taken) < 20
        assert receipt.code == "unavailable"
        with pytest.raises(Unavailable, match="before its present step ends"):
            await task.send("small", message_id="m-small")
        first = InboxItem(message=Message(message_id="m-0", parts=parts))
        (again,) = (await bench.inbox(task.id, first)).receipts  # what is in is known, full or not
        gate.open.set()
        await event(task, "run.ended")
        stored = await bench.sound(task, app.store)
    admitted = {row.data["message_id"]: row.number for row in rows_of(stored, "message.admitted")}
    assert set(admitted) == {"m-first", *taken}
    assert admitted["m-0"] == again.number


async def test_who_is_cancelled_while_nobody_answers_is_cancelled(bench: Bench) -> None:
    """The SDK makes an error of its own of it: a `timeout` or a group around a send would go on as if nothing was."""
    async with bench.app(bench.agent(say("done")), worker=False) as app:
        task = await app.send("go")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await bench.tasks.send(task.id, item("m-2"))
        sending = asyncio.create_task(bench.tasks.send(task.id, item("m-3")))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
