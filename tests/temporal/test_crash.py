"""Real worker processes, killed and ended at chosen moments; judged from the outside's own log (P2, P3, P4, P10)."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from perdure import App, Task
from perdure.app.processes import WorkerProcess
from tests.temporal import crashing
from tests.temporal.bench import Bench, event, logged, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

FOLDER = Path(__file__).parents[2]
SITUATIONS = ("read", "idempotent", "once", "happened", "never")


class Workers:
    """The worker processes of one test; whatever is left of them at its end is killed."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._started: list[WorkerProcess] = []

    async def start(self, **environment: str) -> WorkerProcess:
        worker = await WorkerProcess.start(
            "tests.temporal.crashing:agent",
            self._bench.home,
            folder=FOLDER,
            environment={
                "PERDURE_TEST_PLACE": str(self._bench.home),
                "PERDURE_TEST_AGENT": self._bench.queue,
                "PERDURE_STORE_URL": self._bench.settings.store_url,
                "TEMPORAL_ADDRESS": self._bench.address,
                "TEMPORAL_TLS": "false",
                **environment,
            },
            log=self._bench.home / "workers.log",
        )
        self._started.append(worker)
        return worker

    async def close(self) -> None:
        for worker in self._started:
            await worker.kill()


@pytest.fixture
def let_go(bench: Bench) -> Callable[[], None]:
    """What lets held tools go on, in whichever process they are."""
    return (bench.home / "open").touch


@contextlib.asynccontextmanager
async def placed(bench: Bench) -> AsyncIterator[tuple[App, Workers]]:
    """Give an app without a worker of its own, and the processes that work for it."""
    agent = bench.agent(*([crashing.script] * 4), tools=crashing.TOOLS, model_heartbeat_timeout_s=crashing.HEARTBEAT_S)
    workers = Workers(bench)
    async with bench.app(agent, worker=False) as app:
        try:
            yield app, workers
        finally:
            await workers.close()


async def test_killed_in_the_middle_of_everything(bench: Bench, let_go: Callable[[], None]) -> None:
    """B6, B7, B20: each class of tool, a model call, a question and a resting task, in one worker that is killed."""
    async with placed(bench) as (app, workers):
        victim = await workers.start()
        tasks = {what: await app.send(what) for what in (*SITUATIONS, "model", "ask")}
        await until(lambda: all(bench.outside.count(what) == 1 for what in SITUATIONS))
        await until(lambda: bench.outside.count("model model 1") == 1)
        question = await event(tasks["ask"], "help.requested")
        assert await victim.kill() == -signal.SIGKILL

        let_go()
        await workers.start()
        await tasks["ask"].answer(question.help_id, "the second")
        answers = {what: await _result(task) for what, task in tasks.items()}
        for task in tasks.values():
            await bench.sound(task, app.store)
        keys = bench.outside.keys()
        in_doubt = {what: rows_of(await logged(app.store, task.id), "tool.in_doubt") for what, task in tasks.items()}

    assert answers["read"] == "ok: read done"
    assert answers["idempotent"] == "ok: idempotent done"
    assert answers["once"].startswith("unknown: ")
    assert answers["happened"] == "ok: the outside has it"
    assert answers["never"] == "ok: never done"
    assert answers["model"] == "thought about it"
    assert answers["ask"] == "ok: the second"
    key = {what: f"{task.id}/1/0" for what, task in tasks.items()}
    # Begun twice with one key, each time noted; its end once.
    assert [bench.outside.count(what) for what in ("read", "idempotent")] == [2, 2]
    assert keys[key["read"]] == keys[key["idempotent"]] == 3
    # P3: at most once under a key. The closed one begins anew under the next key only.
    assert [bench.outside.count(what) for what in ("once", "happened", "never")] == [1, 1, 2]
    assert [noted.key for noted in bench.outside.of("never")] == [key["never"], f"{key['never']}/2"]
    # P2: the call that was cut is made again, the recorded ones are not.
    assert bench.outside.count("model model 1") == 2
    for what in (*SITUATIONS, "ask"):
        assert [bench.outside.count(f"model {what} {turn}") for turn in (1, 2)] == [1, 1], what
    assert {what for what, rows in in_doubt.items() if rows} == {"once"}


async def _result(task: Task) -> str:
    async with asyncio.timeout(60):
        return await task.result()


@pytest.mark.parametrize(
    ("dies_after", "what", "models", "reached", "answer"),
    [
        # The very first write: the message is stored and nobody knows.
        ("write", "idempotent", 1, 1, "ok: idempotent done"),
        # Right after promotion: the start row stands, the model was not asked.
        ("begin_model", "idempotent", 1, 1, "ok: idempotent done"),
        # P2: the answer is recorded, and not asked for again.
        ("record_reply", "idempotent", 1, 1, "ok: idempotent done"),
        # Begun, and not called: `once` cannot know that, an idempotent one need not.
        ("begin_effect", "idempotent", 1, 1, "ok: idempotent done"),
        ("begin_effect", "once", 1, 0, "unknown: "),
        # Done, and not told: the result that stands is returned without a call.
        ("finish_effect", "once", 1, 1, "ok: once done"),
    ],
)
async def test_killed_between_a_commit_and_its_telling(
    bench: Bench, let_go: Callable[[], None], dies_after: str, what: str, models: int, reached: int, answer: str
) -> None:
    let_go()
    async with placed(bench) as (app, workers):
        victim = await workers.start(PERDURE_TEST_DIE_AFTER=dies_after)
        task = await app.send(what)
        assert await victim.wait() == -signal.SIGKILL
        await workers.start()
        assert (await _result(task)).startswith(answer)
        await bench.sound(task, app.store)
    assert bench.outside.count(f"model {what} 1") == models
    assert bench.outside.count(what) == reached


async def test_an_idle_workers_death_delays_nothing(bench: Bench, let_go: Callable[[], None]) -> None:
    """B6: the worker restarts and a message arrives before anything is cached."""
    let_go()
    async with placed(bench) as (app, workers):
        first = await workers.start()
        task = await app.send("ask")
        question = await event(task, "help.requested")
        await first.kill()
        sending = asyncio.create_task(task.send("a side note", message_id="m-2"))
        await workers.start()
        await sending
        await task.answer(question.help_id, "blue")
        assert await _result(task) == "ok: blue"
        stored = await bench.sound(task, app.store)
    assert {row.data["attempt"] for row in rows_of(stored, "model.started")} == {1}


async def test_a_once_call_that_ends_within_the_drain_is_not_in_doubt(bench: Bench, let_go: Callable[[], None]) -> None:
    """B3: SIGTERM in the middle of a run; what was begun ends, the run goes on in the next worker."""
    async with placed(bench) as (app, workers):
        first = await workers.start()
        task = await app.send("once")
        await until(lambda: bench.outside.count("once") == 1)
        ending = asyncio.create_task(first.end())
        second = await workers.start()
        let_go()
        await ending
        assert await _result(task) == "ok: once done"
        stored = await bench.sound(task, app.store)
        assert (await bench.tasks.state(task.id)).crashes == 0
        await second.end()
    assert rows_of(stored, "tool.in_doubt") == []
    assert rows_of(stored, "tool.failed") == []
    assert [bench.outside.count(what) for what in ("once", "once.end")] == [1, 1]
    assert len({noted.pid for noted in bench.outside.all()}) == 2
