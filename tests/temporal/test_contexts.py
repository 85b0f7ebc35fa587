"""Tasks of one context: what a new one's model sees of the earlier ones, and what it never sees."""

from collections.abc import Awaitable, Callable

import pytest

from perdure import App, Task, tool
from perdure.core import context_limits as limits
from perdure.core.content import DataPart, Entry, ModelEntry, UserEntry
from perdure.core.errors import InvalidInput, MessageNotWaiting
from perdure.testing import call, fail, last_user, replies, say
from tests.temporal.bench import Bench, Gate, event, logged, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


def seen(transcript: tuple[Entry, ...]) -> list[str]:
    """Return a model's input in words."""
    told = []
    for entry in transcript:
        match entry:
            case UserEntry(message=message):
                data = [part.data for part in message.parts if isinstance(part, DataPart)]
                told.append(f"user: {message.text}" if not data else f"data: {data[0]}")
            case ModelEntry(reply=reply):
                told.append(f"agent: {reply.text}" if not reply.calls else "agent calls")
            case _:
                told.append("result")
    return told


class Reader:
    """A model that keeps what it is given, and does what the latest message says."""

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    def __call__(self, transcript: tuple[Entry, ...]) -> object:
        self.given.append(seen(transcript))
        asked = last_user(transcript)
        if asked == "fail":
            return fail("no")
        if asked == "look" and isinstance(transcript[-1], UserEntry):
            return call("look")
        return say(f"answer to {asked}")


@tool(effect="read")
async def look() -> str:
    return "a secret of the first task"


async def done(app: App, text: str, context: str) -> Task:
    task = await app.send(text, context_id=context)
    await task.result()
    await until(lambda: ended(task))
    return task


async def ended(task: Task) -> bool:
    return (await task.row()).state == "completed"


async def test_a_new_task_sees_what_was_said_in_those_that_had_ended(bench: Bench) -> None:
    reader = Reader()
    async with bench.app(bench.agent(*[reader] * 9, tools=[look])) as app:
        await done(app, "one", "c-1")
        await done(app, "two", "c-1")
        await done(app, "elsewhere", "c-2")
        third = await done(app, "three", "c-1")
        created = (await logged(app.store, third.id))[0].event
    assert reader.given[-1] == [
        "user: one",
        "agent: answer to one",
        "user: two",
        "agent: answer to two",
        "user: three",
    ]
    assert len(created.data["earlier"]) == 2  # type: ignore[arg-type] # a list of ids
    assert reader.given[2] == ["user: elsewhere"]


async def test_calls_and_their_results_stay_where_they_happened(bench: Bench) -> None:
    reader = Reader()
    async with bench.app(bench.agent(*[reader] * 9, tools=[look])) as app:
        await done(app, "look", "c-1")
        await done(app, "two", "c-1")
    assert reader.given[-1] == ["user: look", "agent: answer to look", "user: two"]


async def test_an_open_task_is_never_seen_also_when_it_ends_meanwhile(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    given: list[list[str]] = []

    def model(transcript: tuple[Entry, ...]) -> object:
        given.append(seen(transcript))
        if last_user(transcript) == "hold" and not replies(transcript):
            return call("held")
        return say("done")

    agent = bench.agent(*[model] * 9, tools=[held])
    async with bench.app(agent) as app:
        holding = await app.send("hold", context_id="c-1")
        await gate.wait_reached()
        second = await app.send("ask", context_id="c-1")
        await event(second, "model.answered")
        gate.open.set()
        await holding.result()
        await second.result()
    assert [each for each in given if "user: ask" in each] == [["user: ask"]]


async def test_an_end_without_an_answer_is_told_as_data(bench: Bench) -> None:
    reader = Reader()
    async with bench.app(bench.agent(*[reader] * 9, on_unanswered="fail")) as app:
        failing = await app.send("fail", context_id="c-1")
        await event(failing, "task.status", state="failed")
        await done(app, "two", "c-1")
    said, data, own = reader.given[-1]
    assert (said, own) == ("user: fail", "user: two")
    assert data.startswith("data: ")
    assert "'failed'" in data


async def test_a_conversation_that_was_answered_and_then_canceled_left_nothing_open(bench: Bench) -> None:
    reader = Reader()
    async with bench.app(bench.agent(*[reader] * 9, after_answer="input_required")) as app:
        answered = await app.send("one", context_id="c-1")
        await answered.result()
        await answered.cancel()
        await event(answered, "task.status", state="canceled")
        failing = await app.send("two", context_id="c-1")
        await failing.result()
        await failing.send("fail")
        await event(failing, "run.ended", end="failed")
        await failing.cancel()
        await event(failing, "task.status", state="canceled")
        await (await app.send("three", context_id="c-1")).result()
    one, to_one, two, to_two, fails, data, three = reader.given[-1]
    assert [one, to_one, two, to_two] == ["user: one", "agent: answer to one", "user: two", "agent: answer to two"]
    assert (fails, three) == ("user: fail", "user: three")
    assert data.startswith("data: ")
    assert "'canceled'" in data


async def test_p7_what_is_seen_is_bounded_and_says_so(bench: Bench) -> None:
    reader = Reader()
    long = "x" * (2 * limits.TEXT_BYTES_MAX)
    async with bench.app(bench.agent(*[reader] * 20)) as app:
        for number in range(limits.TASKS_MAX + 1):
            await done(app, f"{number} {long if number < limits.TASKS_MAX - 1 else ''}", "c-1")
        await done(app, "last", "c-1")
    given = reader.given[-1]
    assert given[0].startswith("data: ")
    assert "too long" in given[0]
    assert given[-3:-1] == [f"user: {limits.TASKS_MAX} ", f"agent: answer to {limits.TASKS_MAX} "]
    assert sum(len(each) for each in given) < limits.BYTES_MAX + 1_000


async def test_another_principals_context_is_not_seen(bench: Bench) -> None:
    reader = Reader()
    async with bench.app(bench.agent(*[reader] * 9)) as app:
        await done(app, "one", "c-1")
        assert await app.ended_in("c-1", "somebody else") == ()
        assert len(await app.ended_in("c-1", "")) == 1


# --- what each operation moves ----------------------------------------------------------------------------------


async def stamps(bench: Bench, app: App, *tasks: Task) -> dict[str, int]:
    """Return the revisions of these tasks and of the contexts, once nothing is on its way any more."""

    async def settled() -> bool:
        monitors = [await task.monitor() for task in tasks]
        return not any(each.unwritten or each.flights for each in monitors)

    await until(settled)
    rows = {task.id: (await task.row()).revision for task in tasks}
    return rows | {each.context_id: each.revision for each in await app.store.contexts(9)}


async def test_each_operation_moves_its_own_task_and_reading_moves_nothing(bench: Bench) -> None:
    """Section 7: a task by any write to it or beneath it, its context by a new task alone."""
    agent = bench.agent(*[call("ask_participant", {"question": "Which?"})] * 9, after_answer="input_required")
    async with bench.app(agent) as app:
        one = await app.send("go", context_id="c-1")
        other = await app.send("go", context_id="c-1")
        question = await event(one, "help.requested")
        await event(other, "help.requested")

        async def refused() -> None:
            with pytest.raises(MessageNotWaiting):
                await one.withdraw("m-none")

        async def sent_again() -> None:
            await one.send("later", message_id="m-1", lane="queue")

        async def read() -> None:
            await one.inbox()
            await app.tasks()
            assert [each.event.number for each in await logged(app.store, one.id)]

        changes: list[tuple[str, Callable[[], Awaitable[object]], set[str]]] = [
            ("a message", sent_again, {one.id}),
            ("the message again", sent_again, set()),
            ("a move", lambda: one.steer("m-1"), {one.id}),
            ("a refused withdrawal", refused, set()),
            ("reading", read, set()),
            ("a withdrawal", lambda: one.withdraw("m-1"), {one.id}),
            ("an answer", lambda: one.answer(question.help_id, "this"), {one.id}),
            ("a stop", one.stop, {one.id}),
            ("a stop of what rests", one.stop, set()),
            ("a cancel", one.cancel, {one.id}),
        ]
        for name, change, moves in changes:
            before = await stamps(bench, app, one, other)
            await change()
            after = await stamps(bench, app, one, other)
            assert {thing for thing, revision in after.items() if revision != before[thing]} == moves, name
        before = await stamps(bench, app, other)
        await app.send("go", context_id="c-1")

        async def moved() -> bool:
            return (await stamps(bench, app, other))["c-1"] > before["c-1"]

        await until(moved)
        assert (await stamps(bench, app, other))[other.id] == before[other.id]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"context_id": "c-1", "principal": "bob"}, "context_id: 'c-1' belongs to another principal"),
        ({"context_id": "c\0"}, "context_id: holds a NUL"),
        ({"context_id": "c" * 129}, "context_id: must have 1 to 128"),
        ({"task_id": "a/b"}, "task_id: 'a/b' is empty or contains a '/'"),
        ({"task_id": "t\0"}, "task_id: holds a NUL"),
        ({"task_id": ""}, "task_id: must have 1"),
        ({"principal": "p\0"}, "principal: holds a NUL"),
        ({"principal": "p" * 500}, "principal: must have 0 to"),
        ({"message_id": "m\ud800"}, "message_id: holds a NUL or half a surrogate"),
    ],
)
async def test_p1_what_no_task_could_begin_with_is_refused_and_starts_nothing(
    bench: Bench, fields: dict[str, str], named: str
) -> None:
    """Acknowledged, its message would be lost: the first write is refused, or the workflow never takes a step."""
    async with bench.app(bench.agent(say("yes")), worker=False) as app:
        await app.store.claim_context("c-1", "alice", 1)
        with pytest.raises(InvalidInput) as refused:
            await app.send("hello", **fields)
        assert named in str(refused.value)
        assert [each async for each in bench.client.list_workflows(f"TaskQueue = '{bench.queue}'")] == []
