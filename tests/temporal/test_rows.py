"""Rows on their way to the store: a model call never runs ahead of a row that its transcript needs."""

import asyncio

import pytest

from perdure import tool
from perdure.core.log import LogEvent
from perdure.temporal.outbox import Outbox
from perdure.testing import call, calls, results, say
from tests.temporal.bench import Bench, Gate, event, until


def row(number: int) -> LogEvent:
    return LogEvent(number=number, kind="message.admitted", at_ms=0)


def outbox_of(*rows: LogEvent, confirmed: int = 0, last_number: int = 0) -> Outbox:
    outbox = Outbox(200)
    outbox.go_on(rows, confirmed, last_number)
    return outbox


def test_a_row_has_one_carrier_except_for_who_depends_on_all() -> None:
    outbox = outbox_of(row(1), row(2))
    first = outbox.take()
    outbox.append(row(3))
    second = outbox.take_all()
    assert [[each.number for each in rows] for rows in (first, second)] == [[1, 2], [1, 2, 3]]
    assert outbox.take() == ()
    outbox.give_back(first)
    assert outbox.take() == ()
    outbox.confirm(second)
    assert (outbox.confirmed, outbox.unconfirmed()) == (3, ())


def test_a_row_that_two_carried_is_confirmed_by_the_faster_and_not_taken_back_by_the_other() -> None:
    outbox = outbox_of(row(1), row(2))
    first, second = outbox.take(), outbox.take_all()
    outbox.confirm(second)
    outbox.give_back(first)
    assert (outbox.confirmed, outbox.waiting) == (2, 0)
    outbox.append(row(3))
    third = outbox.take()
    outbox.confirm(third)
    assert (outbox.confirmed, outbox.unconfirmed()) == (3, ())


def test_rows_confirmed_out_of_order_wait_for_the_gap() -> None:
    outbox = outbox_of(row(1))
    first = outbox.take()
    outbox.append(row(2))
    second = outbox.take()
    outbox.confirm(second)
    assert outbox.confirmed == 0
    outbox.give_back(first)
    assert outbox.take() == first
    outbox.confirm(first)
    assert outbox.confirmed == 2


def test_rows_confirmed_past_a_gap_stay_so_in_the_next_history() -> None:
    outbox = outbox_of(row(1))
    first = outbox.take()
    outbox.append(row(2))
    outbox.confirm(outbox.take())
    outbox.give_back(first)
    outbox.append(row(3))
    carried = outbox_of(*outbox.unconfirmed(), confirmed=outbox.confirmed, last_number=3)
    assert (carried.confirmed, [each.number for each in carried.unconfirmed()]) == (0, [1, 3])
    carried.confirm(carried.take())
    assert (carried.confirmed, carried.unconfirmed()) == (3, ())


@pytest.mark.asyncio(loop_scope="session")
async def test_a_model_call_overtakes_a_slow_write_and_still_sees_everything(bench: Bench) -> None:
    """A parallel call's result is on its way with a write that is not done when the last call ends."""
    gates = Gate(), Gate()

    @tool(effect="read")
    async def held(index: int) -> str:
        await gates[index].pass_through()
        return f"result {index}"

    agent = bench.agent(
        calls(call("held", {"index": 0}), call("held", {"index": 1})),
        lambda transcript: say(" ".join(result.text for result in results(transcript))),
        tools=[held],
    )
    async with bench.halves(agent) as halves:
        async with halves.writing():
            task = halves.task(await bench.start(agent))
            await asyncio.gather(*(gate.wait_reached() for gate in gates))
        gates[0].open.set()

        async def first_is_back() -> bool:
            return len((await task.monitor()).flights) == 1

        await until(first_is_back)
        gates[1].open.set()
        assert (await event(task, "model.started", count=2)).turn == 2
        async with halves.writing():
            assert await task.result() == "result 0 result 1"
            await bench.sound(task, halves.store)
