"""What is owed: that which must have happened after each event. The witness says what may not.

A rule that is not carried out breaks nothing that a witness of deeds can see: nothing happens, and nothing that happens
is wrong. So each thing that people, attempts and clocks may do is asked for its effect (`deeds.py`), each end for its
cause and each cause for its end (`ends.py`), and, whatever happened, the task is asked to go on: what may run runs.

Derived from the design's rules and the witness's account, which is kept from rows and commands; of the machine it reads
what a client can see: the status, and how a run that winds down is to end.
"""

from collections.abc import Sequence

from perdure.core import events
from perdure.core.commands import Command, Wait
from perdure.core.state import TaskState
from tests.core.deeds import FOR_GOOD, carried_out
from tests.core.ends import Ends
from tests.core.moment import Before, Step, look, place_of, step_of
from tests.core.witness import WAITS_MAX_MS, Place, Witness, must


class Owed:
    """What one task owes, by its witness's account."""

    def __init__(self, account: Witness) -> None:
        self.account = account
        self.ends = Ends()
        self._losses: dict[Place, int] = {}

    def look(self, event: events.Event) -> Before:
        """Return what must be known of the account before this event."""
        return look(self.account, event)

    def settle(self, before: Before, event: events.Event, commands: Sequence[Command], state: TaskState) -> None:
        """Raise what is still owed after an event that the witness has seen."""
        step = step_of(before, event, commands, state, self.account)
        carried_out(step)
        self._waits_well(step)
        if step.end is not None:  # what the next run asks of its open calls begins a count of its own
            self._losses.clear()
        self.ends.settle(step)
        goes_on(self.account)

    def _waits_well(self, step: Step) -> None:
        """P10: the first loss in a row is made good at once. P7: others wait, for what a provider asks, and bounded."""
        if isinstance(step.event, events.ModelReplied | events.ToolFinished):
            self._losses.pop(place_of(step.event), None)
        if not isinstance(step.event, events.ModelFailed | events.ToolFailed):
            return
        failure, place, at = step.event.failure, place_of(step.event), step.at
        waits = [command for command in step.commands if isinstance(command, Wait)]
        lost, earlier = failure.kind not in FOR_GOOD, self._losses.get(place, 0)
        if lost and (place in at.flying or place in at.waits):
            later = earlier > 0 or failure.kind == "store"
            must(bool(waits) == later, "P10", f"after {earlier} losses came {failure.kind}, and {waits}")
        self._losses[place] = earlier + 1 if lost else 0
        floor_ms = 0 if lost else failure.retry_after_ms or 0
        for wait in waits:
            must(floor_ms <= wait.delay_ms <= floor_ms + WAITS_MAX_MS, "P7", f"{wait} after {failure}")


def goes_on(at: Witness) -> None:
    """Raise what could go on and does not."""
    if at.terminal:
        return
    if at.run == 0:
        must(not at.canceling, "P5", "a task that was canceled goes on")
        ready = [name for name, m in at.pending.items() if m.tail > at.head and m.stored]
        must(not ready, "R7", f"{ready} may run and no run opens")
    elif at.winding:
        must(bool(at.flying), "R10", f"nothing of run {at.run} is under way any more, and it does not end")
    else:
        under_way = bool(at.flying or at.waits or at.asks)
        must(under_way or _held(at), "R7", f"run {at.run} waits for nothing and does not go on")
        _calls_start(at)


def _held(at: Witness) -> bool:
    """R3, R4: the run was answered, or not fed yet, and the message that is to go on with it is not durable."""
    if len(at.open.results) < len(at.open.calls) or (at.fed and not at.answered) or not at.pending:
        return False
    steers = sorted((m for m in at.pending.values() if m.lane == "steer"), key=lambda m: m.tail)
    queue = sorted((m for m in at.pending.values() if m.lane == "queue"), key=lambda m: m.admitted)
    return not any(lane[0].stored for lane in (steers, queue) if lane)


def _calls_start(at: Witness) -> None:
    """R14: each open call is under way or asks, unless it must not run beside an earlier one that is open."""
    asked = {row.data["index"] for row in at.asks.values()}
    begun = asked | {index for turn, index in (*at.flying, *at.waits) if turn == at.open.turn}
    first, all_beside = True, True
    for index, call in enumerate(at.open.calls):
        if index in at.open.results:
            continue
        beside = not at.fed or call.question is not None or at.parallel(call.tool)
        may = first or (beside and all_beside)
        must(index in begun or not may, "R14", f"call {index} of turn {at.open.turn} may begin and does not")
        first, all_beside = False, all_beside and beside
        must(
            index in asked or not _needs_a_word(at, index), "P3", f"call {index} waits for a word, and nobody is asked"
        )


def _needs_a_word(at: Witness, index: int) -> bool:
    """Whether a person is to be asked about an open call before it begins, in whatever order calls begin."""
    call = at.open.calls[index]
    doubted = (call.tool, call.arguments_digest) in at.doubts.values()
    given = (at.open.turn, index) in at.approved or index in at.open.attempts
    return at.fed and call.ruling is not None and call.ruling.then == "ask" and not given and not doubted
