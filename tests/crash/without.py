"""Perdure without one of its guards: what tests of guards run their subject in.

`PERDURE_TEST_WITHOUT` names the guard. A worker process takes it out when it loads its agent, a pytest process when
this module is its plugin (`-p tests.crash.without`).
"""

import os
import sys
from collections.abc import Callable

from sqlalchemy import Connection, bindparam, select

from perdure.core.effects import EffectRequest, LedgerView, Verdict, judge
from perdure.core.failure import Failure
from perdure.core.log import Batch
from perdure.core.machine import attempts, calls, turn
from perdure.core.machine.draft import Draft
from perdure.core.ports import RecordedReply
from perdure.store import effect_ledger, model_ledger, reading
from perdure.store.schema import events
from perdure.store.task_rows import OpenTask
from perdure.temporal.deaths import DeathReport

GUARD = "PERDURE_TEST_WITHOUT"

Judge = Callable[[EffectRequest, LedgerView], Verdict]


def _judge_by(judging: Judge) -> None:
    setattr(effect_ledger, "judge", judging)  # noqa: B010 - the ledger has it by import, and exports it to nobody


def _ledger_lookup() -> None:
    """A recorded result is not looked for: the call begins again."""

    def forgetful(request: EffectRequest, view: LedgerView) -> Verdict:
        verdict = judge(request, view)
        return "begin" if verdict == "done" else verdict

    _judge_by(forgetful)


def _begun() -> None:
    """What was begun leaves no trace for the next attempt."""

    def blind(request: EffectRequest, view: LedgerView) -> Verdict:
        return judge(request, view.model_copy(update={"begun_attempts": ()}))

    _judge_by(blind)


def _stop_fence() -> None:
    """Nobody looks at a stop's fence."""
    refuse = model_ledger._refuse

    def open_gate(request: EffectRequest, view: LedgerView) -> Verdict:
        return judge(request, view.model_copy(update={"fence": 0}))

    def let_through(task: OpenTask, run: int, turn: int, attempt: int, latest: int) -> None:
        refuse(task, max(run, task.fence + 1), turn, attempt, latest)

    _judge_by(open_gate)
    model_ledger._refuse = let_through


def _contiguous_prefix() -> None:
    """Readers are served whatever is there, beyond a gap too."""
    reading._EVENTS = (
        select(events.c.body)
        .where(
            events.c.task_id == bindparam("of_task"),
            events.c.number > bindparam("after"),
            events.c.number <= bindparam("upto"),
        )
        .order_by(events.c.number)
    )


def _reply_lookup() -> None:
    """A recorded answer does not keep the model from being asked."""
    begin = model_ledger.begin_model

    def forgetful(
        connection: Connection, batch: Batch, run: int, turn: int, attempt: int, worker: str, at_ms: int, model: str
    ) -> RecordedReply | None:
        begin(connection, batch, run, turn, attempt, worker, at_ms, model)
        return None

    model_ledger.begin_model = forgetful


def _sticky_reset() -> None:
    """A dead worker keeps the workflows that it had cached."""

    async def kept(report: DeathReport, task_id: str, run_id: str) -> None:
        del report, task_id, run_id

    setattr(DeathReport, "_reset_sticky", kept)  # noqa: B010 - a method is not assigned to otherwise


def _crash_limit() -> None:
    """A task may kill as many workers as it comes to."""
    counted = attempts.count_crash

    def endless(draft: Draft, failure: Failure) -> bool:
        agent = draft.state.agent
        draft.set(agent=agent.model_copy(update={"crashes_max": sys.maxsize}))
        ended = counted(draft, failure)
        draft.set(agent=agent)
        return ended

    for module in (turn, calls):
        setattr(module, "count_crash", endless)  # noqa: B010 - both have it by import, and export it to nobody


GUARDS: dict[str, Callable[[], None]] = {
    "ledger lookup": _ledger_lookup,
    "begun": _begun,
    "stop fence": _stop_fence,
    "contiguous prefix": _contiguous_prefix,
    "reply lookup": _reply_lookup,
    "sticky reset": _sticky_reset,
    "crash limit": _crash_limit,
}


def take_out(name: str) -> None:
    """Take the guard out of this process; nothing for an empty name."""
    if name:
        GUARDS[name]()


def pytest_configure() -> None:
    take_out(os.environ.get(GUARD, ""))
