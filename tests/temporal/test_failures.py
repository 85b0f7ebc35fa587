"""Failures: what is tried again, what the model is told, and what ends a run without losing anything."""

from pathlib import Path

import pytest

from perdure import Budget, Call, RunFailed, ToolError, tool
from perdure.core import limits
from perdure.core.agent import EffectClass, RetryPolicy
from perdure.core.content import Entry, ModelEntry
from perdure.core.errors import InvalidInput, TaskClosed
from perdure.testing import call, calls, fail, last_user, results, say
from perdure.testing.script import Step
from tests.temporal.bench import FAST, Bench, Gate, activity_inputs, event, logged, results_of, rows_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


def told(transcript: tuple[Entry, ...]) -> Step:
    """Answer with what the model was told of its calls."""
    return say(" | ".join(f"{result.status}: {result.text}" for result in results(transcript)))


# --- the model --------------------------------------------------------------------------------------------------


async def test_a_busy_provider_is_asked_again_no_sooner_than_it_said(bench: Bench) -> None:
    """B16: Retry-After is a floor."""
    agent = bench.agent(say("done", failure=fail("429", retryable=True, retry_after_s=0.4), failures=2))
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    failed, started = rows_of(stored, "model.failed"), rows_of(stored, "model.started")
    assert [row.data["attempt"] for row in started] == [1, 2, 3]
    for index, row in enumerate(failed):
        assert row.data["failure"] == "model_transient"
        assert started[index + 1].at_ms - row.at_ms >= 400


async def test_a_short_backoff_is_short(bench: Bench) -> None:
    """The embedded server's own resolution would make a wait of 50 ms last a second."""
    retry = RetryPolicy(attempts_max=6, first_ms=50, factor=1.0)
    agent = bench.agent(say("done", failure=fail("503", retryable=True), failures=5), model_retry=retry)
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    failed, started = rows_of(stored, "model.failed"), rows_of(stored, "model.started")
    assert min(started[index + 1].at_ms - row.at_ms for index, row in enumerate(failed)) < 500


async def test_a_refused_request_ends_the_run_and_the_next_message_goes_on(bench: Bench) -> None:
    """R13, B9: a tool succeeded, the next model call fails for good, a message goes on; the tool ran once."""

    @tool(effect="once")
    async def act() -> str:
        bench.outside.note("act")
        return "ok"

    def second(transcript: tuple[Entry, ...]) -> object:
        return say("done") if last_user(transcript) == "again" else fail("400 no such model")

    agent = bench.agent(call("act"), second, tools=[act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        with pytest.raises(RunFailed, match="400 no such model") as failed:
            await task.result()
        assert (failed.value.state, failed.value.reason) == ("input_required", "model")
        await task.send("again")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert bench.outside.count("act") == 1
    assert [row.data["end"] for row in rows_of(stored, "run.ended")] == ["failed", "answered"]
    assert len(rows_of(stored, "model.failed")) == 1


async def test_an_agent_may_fail_its_task_instead(bench: Bench) -> None:
    agent = bench.agent(fail("no"), on_unanswered="fail")
    async with bench.app(agent) as app:
        task = await app.send("go")
        with pytest.raises(RunFailed) as failed:
            await task.result()
        assert failed.value.state == "failed"
        with pytest.raises(TaskClosed):
            await task.send("again")
        await bench.sound(task, app.store)


@pytest.mark.parametrize(("finish", "reason"), [("length", "truncated"), ("refusal", "refusal")])
async def test_a_cut_or_refused_reply_ends_the_run(bench: Bench, finish: str, reason: str) -> None:
    agent = bench.agent(say("half an ans", finish=finish))  # type: ignore[arg-type] # one of the two
    async with bench.app(agent) as app:
        task = await app.send("go")
        with pytest.raises(RunFailed) as failed:
            await task.result()
        assert failed.value.reason == reason
        await bench.sound(task, app.store)


async def test_a_model_that_takes_too_long_is_asked_again(bench: Bench) -> None:
    attempts: list[int] = []

    def slow_once(transcript: tuple[Entry, ...]) -> Step:
        attempts.append(1)
        return say("done", delay_s=30.0 if len(attempts) == 1 else 0.0)

    agent = bench.agent(slow_once, model_timeout_s=0.5, model_heartbeat_timeout_s=5.0)
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert [row.data["failure"] for row in rows_of(stored, "model.failed")] == ["timeout"]


@pytest.mark.parametrize(
    "budget",
    [Budget(turns_max=2), Budget(tokens_max=10), Budget(cost_usd_max=0.0001), Budget(wall_s_max=0.05)],
    ids=["turns", "tokens", "cost", "wall"],
)
async def test_a_run_that_reaches_its_budget_ends_and_says_which(bench: Bench, budget: Budget) -> None:
    @tool(effect="read")
    async def look_up() -> str:
        return "x"

    agent = bench.agent(*([call("look_up", delay_s=0.06)] * 5), tools=[look_up], budget=budget)
    priced = agent.model
    priced._usd_per_token = 0.001  # type: ignore[union-attr] # the scripted model's price
    async with bench.app(agent) as app:
        task = await app.send("go")
        with pytest.raises(RunFailed, match="budget\\.") as failed:
            await task.result()
        assert failed.value.reason == "budget"
        await bench.sound(task, app.store)


# --- tools ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "called", "status"), [("read", 3, "error"), ("idempotent", 3, "unknown"), ("once", 1, "unknown")]
)
async def test_a_tool_that_raises_is_tried_again_as_its_class_allows(
    bench: Bench, effect: EffectClass, called: int, status: str
) -> None:
    @tool(effect=effect, retry=FAST)
    async def act(call: Call) -> str:
        bench.outside.note("act", call.idempotency_key)
        raise RuntimeError("connection reset")

    agent = bench.agent(call("act"), told, tools=[act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        answer = await task.result()
        stored = await bench.sound(task, app.store)
    assert bench.outside.keys() == {f"{task.id}/1/0": called}
    assert answer.startswith(status)
    assert "connection reset" in answer
    assert bool(rows_of(stored, "tool.in_doubt")) == (status == "unknown")


async def test_a_tool_error_is_told_and_never_tried_again(bench: Bench) -> None:
    @tool(effect="once")
    async def act() -> str:
        bench.outside.note("act")
        raise ToolError("the shop is closed")

    agent = bench.agent(call("act"), told, tools=[act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "error: the shop is closed"
        await bench.sound(task, app.store)
    assert bench.outside.count("act") == 1


async def test_one_of_three_in_parallel_raises_and_drops_no_sibling(bench: Bench) -> None:
    """B8: three results in call order, one of them an error."""
    gate = Gate()

    @tool(effect="read", retry=RetryPolicy(attempts_max=1))
    async def look_up(name: str) -> str:
        if name == "b":
            gate.open.set()
            raise ValueError("broken")
        await gate.pass_through()
        return name

    agent = bench.agent(calls(*(call("look_up", {"name": name}) for name in "abc")), told, tools=[look_up])
    async with bench.app(agent) as app:
        task = await app.send("go")
        answer = await task.result()
        await bench.sound(task, app.store)
    first, second, third = answer.split(" | ")
    assert (first, third) == ("ok: a", "ok: c")
    assert second.startswith("error: ")
    assert "broken" in second


async def test_what_cannot_run_is_told_with_what_would_be_right(bench: Bench) -> None:
    """B11, B12, B13: an unknown tool, cut-off JSON, a text for a number; nothing runs and nothing is tried again."""

    @tool(effect="once")
    async def act(amount: float) -> str:
        bench.outside.note("act")
        return f"paid {amount}"

    agent = bench.agent(
        calls(call("pay", {"amount": 1}), call("act", '{"amount": 1'), call("act", {"amount": "a lot"})),
        told,
        call("act", {"amount": 2}),
        told,
        tools=[act],
        after_answer="input_required",
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        unknown, cut, wrong = (await task.result()).split(" | ")
        stored = await bench.sound(task, app.store)
        assert rows_of(stored, "tool.started") == []
        await task.send("correct it")
        assert await task.result() == "ok: paid 2.0"
        await bench.sound(task, app.store)
    assert unknown == "error: There is no tool 'pay'. Tools: act."
    assert cut.startswith("error: The arguments are not a JSON object")
    assert wrong.startswith("error: ")
    assert "amount" in wrong
    assert bench.outside.count("act") == 1


async def test_large_results_are_kept_and_shown_cut(bench: Bench) -> None:
    """B14: 3 MB at once, and many that together pass Temporal's limit of 4 MB."""
    megabyte = 1024 * 1024

    @tool(effect="read")
    async def export(megabytes: int) -> str:
        return "é" * (megabytes * megabyte // 2)

    steps = calls(*(call("export", {"megabytes": 1}) for _ in range(5)), call("export", {"megabytes": 3}))
    agent = bench.agent(steps, say("done"), tools=[export])
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
        found = [entry.result for entry in results_of(stored)]
        for result, size in zip(found, [1, 1, 1, 1, 1, 3], strict=True):
            assert len(result.text.encode()) <= limits.TOOL_TEXT_BYTES_MAX
            assert "The whole is kept" in result.text
            assert result.blob is not None
            assert len(await app.store.get_blob(result.blob)) == size * megabyte
        (history,) = await bench.histories(task.id)
    assert len(rows_of(stored, "tool.failed")) == 0
    assert max(activity_inputs(history, "invoke_llm")) < 16_000


async def test_a_large_message_travels_as_a_blob(bench: Bench) -> None:
    agent = bench.agent(say("read"))
    async with bench.app(agent) as app:
        task = await app.send("word " * 40_000)
        assert await task.result() == "read"
        await bench.sound(task, app.store)
        (history,) = await bench.histories(task.id)
    assert len(history.to_json()) < 100_000


async def test_what_databases_cannot_hold_is_made_safe(bench: Bench) -> None:
    """B15: NUL bytes and lone surrogates in a prompt, in arguments, in an output and in an error."""
    dirty = "a\x00b\ud800c"

    @tool(effect="read")
    async def echo(text: str) -> str:
        return text + dirty

    @tool(effect="once")
    async def act(text: str) -> str:
        raise ToolError(dirty)

    agent = bench.agent(
        calls(
            call("echo", {"text": dirty}), call("act", {"text": dirty}), call("ask_participant", {"question": dirty})
        ),
        say(dirty),
        tools=[echo, act],
    )
    async with bench.app(agent) as app:
        with pytest.raises(InvalidInput, match="message_id"):
            await app.send("go", message_id=dirty)
        task = await app.send(dirty)
        question = await event(task, "help.requested")
        await task.answer(question.help_id, dirty)
        assert await task.result() == "a\ufffdb\ufffdc"
        stored = await bench.sound(task, app.store)
    assert [entry.result.text for entry in results_of(stored)] == ["a\ufffdb\ufffdc" * 2, *["a\ufffdb\ufffdc"] * 2]


async def test_a_model_given_id_that_repeats_makes_no_key_repeat(bench: Bench) -> None:
    """B26: the scripted ids are made from the position, so the same position is given to two turns."""

    @tool(effect="once")
    async def act(call: Call) -> str:
        bench.outside.note("act", call.idempotency_key)
        return "ok"

    agent = bench.agent(call("act"), call("act"), say("done"), tools=[act])
    model = agent.model
    made = model._made  # type: ignore[union-attr] # the scripted model's own step
    model._made = lambda step, position, request: made(step, 0, request)  # type: ignore[union-attr] # as above
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await logged(app.store, task.id)
    ids = [
        each.call_id
        for stored_event in stored
        for entry in stored_event.entries
        if isinstance(entry, ModelEntry)
        for each in entry.reply.calls
    ]
    assert ids == ["call_1_1", "call_1_1"]
    assert bench.outside.keys() == {f"{task.id}/1/0": 1, f"{task.id}/2/0": 1}


async def test_a_worker_without_the_agents_tool_says_so(bench: Bench, tmp_path: Path) -> None:
    """The start records a tool that the worker does not have: nothing is begun, and the run goes on."""

    @tool(effect="once")
    async def act() -> str:
        return "never"

    agent = bench.agent(call("act"), told)
    with_tool = bench.agent(call("act"), told, tools=[act])
    async with bench.app(agent) as app:
        task = app.task(await bench.start(with_tool))
        assert "the worker that took this call in has no tool 'act'" in await task.result()
        await bench.sound(task, app.store)
