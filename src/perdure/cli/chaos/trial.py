"""One run of the agent: undisturbed when there is no plan, under kills otherwise; it ends with the evidence.

Workers are up before the clock starts, where they are started here; an app that is started as a child belongs to the
time that is measured, in both runs.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.app.app import App
from perdure.app.settings import Settings
from perdure.cli.chaos.case import Case
from perdure.cli.chaos.conversation import Conversation
from perdure.cli.chaos.evidence import Applied, Evidence
from perdure.cli.chaos.hosting import Host, app_as_child, workers_here
from perdure.cli.chaos.killer import Killer
from perdure.cli.chaos.modes import Mode, recorded_spec
from perdure.cli.chaos.probe import ask, since
from perdure.cli.chaos.schedule import PlannedKill
from perdure.cli.chaos.victims import ASK_WITHIN
from perdure.cli.reading import TaskLog, read_log
from perdure.cli.signals import first_of
from perdure.core.errors import Unavailable
from perdure.core.state import TERMINAL
from perdure.temporal.history import read_history
from perdure.temporal.tasks import TaskClient

AT_REST_WITHIN_S: Final = 20.0
"""A terminal row is in the store before the workflow has returned; a death in between costs a workflow task."""

LOOK_EVERY_S: Final = 0.05


@dataclass(frozen=True)
class Bed:
    """Where trials happen: an application without workers, and a connection, over one data folder."""

    app: App
    client: Client
    settings: Settings
    as_app: bool
    within_s: float


@dataclass(frozen=True)
class Order:
    """What a trial shall be. `kills` is the number in the schedule, also for the undisturbed run beside it."""

    mode: Mode
    kills: int
    seed: int | None = None
    plan: tuple[PlannedKill, ...] = ()


async def run_trial(bed: Bed, case: Case, order: Order) -> Evidence:
    """Run the agent once and return what it left behind.

    Raises:
        ConfigurationError: Workers refuse the agent, the probe fails, or the answers do not suffice.
        Unavailable: It did not end in time, or workers do not start any more.
    """
    before = () if case.probe is None else await ask(case.probe)
    talk = Conversation(TaskClient(bed.client, case.agent.id), bed.app.store, case.messages, case.answers)
    async with _hosted(bed, case, order, talk) as (host, began_s):
        killer = Killer(order.plan, host, bed.client, talk.task_id, bed.settings.home / "temporal.db")
        try:
            async with asyncio.timeout(bed.within_s):
                await first_of(_under_kills(talk, killer), host.watch())
                lasted_s = time.monotonic() - began_s
                log = await read_log(bed.settings, talk.task_id)
                await _at_rest(bed.client, log)
        except TimeoutError as error:
            raise Unavailable(
                f"task {talk.task_id} did not end within {bed.within_s:g} s, after {len(killer.done)} kills; "
                "a slower agent needs a larger --within"
            ) from error
    return await _evidence(bed, case, order, talk, killer, lasted_s, before)


async def _under_kills(talk: Conversation, killer: Killer) -> None:
    """Hold the conversation; the kills go on beside it, and end with it."""
    holding, killing = asyncio.ensure_future(talk.hold()), asyncio.ensure_future(killer.work())
    try:
        await asyncio.wait({holding, killing}, return_when=asyncio.FIRST_COMPLETED)
        if not holding.done():
            killing.result()
        await holding
    finally:
        for each in (holding, killing):
            each.cancel()
        await asyncio.gather(holding, killing, return_exceptions=True)


@contextlib.asynccontextmanager
async def _hosted(bed: Bed, case: Case, order: Order, talk: Conversation) -> AsyncIterator[tuple[Host, float]]:
    """Start the task and those who work on it, in the order that is fair; give also when the clock started."""
    async with case.agent.opened() as known:
        spec = recorded_spec(known.spec(), order.mode, order.kills)
    home = bed.settings.home
    if bed.as_app:
        began_s = time.monotonic()
        await talk.start(spec)
        async with app_as_child(case, home, talk.task_id) as app:
            yield app, began_s
    else:
        reports = order.mode == "supervised"
        async with workers_here(case, bed.client, home, reports=reports) as workers:
            began_s = time.monotonic()
            await talk.start(spec)
            yield workers, began_s


async def _at_rest(client: Client, log: TaskLog) -> None:
    """Wait until Temporal answers and a terminal task's workflow has returned: its history is whole then."""
    handle = client.get_workflow_handle(log.row.header.task_id)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(AT_REST_WITHIN_S):
            while True:
                with contextlib.suppress(RPCError):  # it may just be starting again
                    described = await handle.describe(rpc_timeout=ASK_WITHIN)
                    if described.close_time is not None or log.row.state not in TERMINAL:
                        return
                await asyncio.sleep(LOOK_EVERY_S)


async def _evidence(
    bed: Bed,
    case: Case,
    order: Order,
    talk: Conversation,
    killer: Killer,
    lasted_s: float,
    before: tuple[Applied, ...],
) -> Evidence:
    """Read every witness anew."""
    log = await read_log(bed.settings, talk.task_id)
    history = await read_history(bed.client, talk.task_id)
    world = None if case.probe is None else since(before, await ask(case.probe))
    keys = {applied.key for applied in world or ()}
    return Evidence(
        task_id=talk.task_id,
        mode=order.mode,
        seed=order.seed,
        plan=order.plan,
        kills=tuple(killer.done),
        lasted_s=lasted_s,
        acknowledged=tuple(talk.acknowledged),
        followed=talk.followed,
        state=log.row.state,
        reason=log.row.reason,
        events=log.events,
        attempts=log.attempts,
        history=history.attempts,
        effects=log.effects,
        model_calls=await bed.app.store.model_calls(talk.task_id),
        world=world,
        covered=frozenset(row.tool for row in log.effects if row.key in keys),
    )
