"""The verdict: each promise that the demo can show, judged from what was found and not from what was intended.

A judgement is a claim and whether it held. Claims about what this script does (one replacement, no refund) are made
only where the model is scripted; the others hold for any model. P7, P9 and P11 are not judged here: they take a
longer life, a stop and a replay.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from signal import SIGKILL

from perdure.app.judging import fates
from perdure.cli.demo.evidence import Evidence
from perdure.cli.demo.sources import HEARTBEAT_TIMEOUT_S
from perdure.cli.demo.world import BLENDER_ORDER, KETTLE_ORDER
from perdure.core.attempts import AttemptRow, attempts_from_log
from perdure.core.content import ModelEntry
from perdure.core.log import LogEvent
from perdure.core.state import TERMINAL


@dataclass(frozen=True)
class Judgement:
    """A claim about one promise, whether it held, and what was found."""

    promise: str
    claim: str
    held: bool
    found: str


def judge(evidence: Evidence) -> tuple[Judgement, ...]:
    """Judge everything that this evidence allows, in the order of the promises."""
    claims = [*ALWAYS, *(SCRIPTED if evidence.notes.scripted else ())]
    judged = [claim(evidence) for claim in claims]
    return tuple(sorted((found for found in judged if found is not None), key=lambda judgement: judgement.promise))


# --- what holds for any model ------------------------------------------------------------------------------------


def every_message_once(evidence: Evidence) -> Judgement:
    """P1: each admitted message was acted on once, withdrawn, or listed at the end; each question got one answer."""
    became = fates(evidence.events)
    admitted = Counter(str(event.data["message_id"]) for event in evidence.of("message.admitted"))
    asked = Counter(event.help_id for event in evidence.of("help.requested"))
    answered = Counter(event.help_id for event in (*evidence.of("help.answered"), *evidence.of("help.closed")))
    held = admitted == became and bool(admitted) and max(admitted.values()) == 1 and asked == answered
    return Judgement(
        "P1",
        "the customer's message was acted on once, and each question has one answer",
        held,
        f"{admitted.total()} admitted, {became.total()} acted on; {asked.total()} asked, {answered.total()} answered",
    )


def reply_served_by_others(evidence: Evidence) -> Judgement | None:
    """P1: what came after the customer's answer ran on other workers than the one that was killed meanwhile."""
    if evidence.notes.waiting is None or not evidence.notes.killed:
        return None
    before = evidence.notes.waiting.attempts
    killed = evidence.notes.killed[-1]
    served = {pid_of(row) for row in evidence.history[before:]}
    earlier = {pid_of(row) for row in evidence.history[:before]}
    return Judgement(
        "P1",
        f"the customer's answer was served, by other workers than the one that had asked and was killed (pid {killed})",
        bool(served) and None not in served and killed not in served and killed in earlier,
        f"attempts after the answer ran on {_pids(served)}, those before it on {_pids(earlier)}",
    )


def every_answer_once(evidence: Evidence) -> Judgement:
    """P2: no turn's model call was completed twice, and with a script none was even scheduled twice."""
    turns: dict[int, Counter[str]] = {}
    for row in evidence.history:
        if row.activity == "invoke_llm":
            turns.setdefault(row.turn, Counter()).update(("scheduled", row.outcome))
    last = max(turns, default=0)
    held = list(turns) == list(range(1, last + 1)) and last > 0
    if evidence.notes.scripted:
        held = held and all(counts == Counter(scheduled=1, completed=1) for counts in turns.values())
        claim = f"per turn (1 to {last}) invoke_llm was scheduled once and completed once"
    else:
        held = held and all(counts["completed"] <= 1 for counts in turns.values())
        claim = f"in no turn (1 to {last}) did invoke_llm complete twice"
    found = ", ".join(f"turn {turn}: {counts['scheduled']}/{counts['completed']}" for turn, counts in turns.items())
    return Judgement("P2", claim, held, f"scheduled/completed in Temporal's history: {found or 'none'}")


def writes_never_twice(evidence: Evidence) -> Judgement:
    """P3: the world received no writing call twice, and changed nothing beyond the calls that it received."""
    writes = [call for call in evidence.calls if call.tool in {"refund", "ship_replacement"}]
    keys = Counter(call.key for call in writes)
    applied = Counter(call.tool for call in writes if call.outcome == "applied")
    shipments, refunds = len(evidence.snapshot["shipments"]), len(evidence.snapshot["refunds"])
    held = all(count == 1 for count in keys.values())
    held = held and (applied["ship_replacement"], applied["refund"]) == (shipments, refunds)
    begun = [row for row in evidence.effects if row.effect == "once" and len(row.begun) > 1]
    return Judgement(
        "P3",
        "no writing call came twice under one key, and each change belongs to one call",
        held and not begun,
        f"{len(writes)} writing calls under {len(keys)} keys, {shipments} shipments, {refunds} refunds",
    )


def cut_call_same_key(evidence: Evidence) -> Judgement | None:
    """P3: the call that was cut off began again with the same key, on another worker."""
    key = evidence.notes.held_key
    if not key:
        return None
    received = [call for call in evidence.calls if call.key == key]
    begun = next((row.begun for row in evidence.effects if row.key == key), ())
    workers = {attempt.worker for attempt in begun}
    times = len(received)
    only = evidence.notes.scripted is False or {call.key for call in evidence.received("get_order")} == {key}
    return Judgement(
        "P3",
        f"get_order was begun twice with one key ({key})",
        times == len(begun) == len(workers) == 2 and {call.tool for call in received} == {"get_order"} and only,  # noqa: PLR2004
        f"the world received it {times} times, the ledger has {len(begun)} attempts on {len(workers)} workers",
    )


def no_effect_guessed(evidence: Evidence) -> Judgement:
    """P4: what the ledger says of each writing call is what the world says of its key; nothing is in doubt."""
    world = {call.key: call.outcome == "applied" for call in evidence.calls if call.outcome in {"applied", "refused"}}
    ledger = {row.key: row.status == "ok" for row in evidence.effects if row.effect == "once"}
    open_keys = [row.key for row in evidence.effects if row.outcome == "open"]
    doubts = len(evidence.of("tool.in_doubt"))
    return Judgement(
        "P4",
        "the ledger knows of each writing call what the world knows; no outcome was in doubt",
        world == ledger and not open_keys and doubts == 0,
        f"the world decided {len(world)} keys, the ledger {len(ledger)}; {len(open_keys)} open, {doubts} in doubt",
    )


def one_end(evidence: Evidence) -> Judgement:
    """P5: each run has one end, the task has one terminal state, and it is the last thing in the log."""
    started = [event.run for event in evidence.of("run.started")]
    ended = [event.run for event in evidence.of("run.ended")]
    terminal = [event.number for event in evidence.of("task.status") if event.data["state"] in TERMINAL]
    last = evidence.events[-1].number if evidence.events else 0
    return Judgement(
        "P5",
        "each run has one end, and the task one terminal state, its last event",
        started == ended == list(range(1, len(started) + 1)) and terminal == [last],
        f"runs {started} started, {ended} ended; terminal at {terminal} of {last} events",
    )


def completed(evidence: Evidence) -> Judgement:
    """P5: the end is a completed task: what a real model's provider refused must not pass for a success."""
    last = evidence.events[-1].data if evidence.events else {}
    found = f"{last.get('state')} {last.get('reason') or ''} {last.get('message') or ''}".strip()
    return Judgement("P5", "the task completed", last.get("state") == "completed", found)


def gapless(evidence: Evidence) -> Judgement:
    """P6: the event numbers are 1 to n in the store, and were followed live as just that across the kills."""
    numbers = [event.number for event in evidence.events]
    expected = list(range(1, len(numbers) + 1))
    return Judgement(
        "P6",
        f"event numbers 1 to {len(numbers)}, without gap or duplicate, stored and as followed live",
        bool(numbers) and numbers == expected and list(evidence.notes.seen) == expected,
        f"{len(numbers)} stored, {len(evidence.notes.seen)} followed",
    )


def quiet_waiting(evidence: Evidence) -> Judgement | None:
    """P8: from a question's row to its answer, Temporal had and began nothing for the task."""
    if evidence.notes.waiting is None:
        return None
    waits = evidence.waits
    activities, timers = sum(wait.activities for wait in waits), sum(wait.timers for wait in waits)
    workflow_tasks, waited_ms = sum(w.workflow_tasks for w in waits), sum(w.ended_ms - w.began_ms for w in waits)
    return Judgement(
        "P8",
        "while the customer was waited for, no activity, no timer and no workflow task was open",
        bool(waits) and all(wait.quiet for wait in waits),
        f"in {len(waits)} waits of {waited_ms} ms together: {activities} activities, {timers} timers, "
        f"{workflow_tasks} workflow tasks",
    )


def acted_on_at_once(evidence: Evidence) -> Judgement | None:
    """P10: the call that was cut off was scheduled again as soon as its worker was dead, not after a timeout."""
    if evidence.cut_call is None or not evidence.notes.killed_at_ms:
        return None
    again = [row.scheduled_at_ms for row in evidence.history if row.call == evidence.cut_call and row.attempt == 2]  # noqa: PLR2004
    took_ms = again[0] - evidence.notes.killed_at_ms[0] if again else None
    shown = "never" if took_ms is None else f"after {took_ms} ms"
    return Judgement(
        "P10",
        f"the killed worker's call was scheduled again within {RECOVERY_MS_MAX} ms (heartbeats would have taken "
        f"{HEARTBEAT_TIMEOUT_S:g} s)",
        took_ms is not None and took_ms <= RECOVERY_MS_MAX,
        f"it was scheduled again {shown}",
    )


RECOVERY_MS_MAX = 1000
"""A tenth of it is usual; this is what a busy machine may take, and still far from a timeout."""


def witnesses_agree(evidence: Evidence) -> Judgement:
    """Temporal's history and the event log tell the same attempts with the same outcomes."""
    history = Counter(
        (row.activity, row.turn, row.index, row.attempt, row.outcome)
        for row in evidence.history
        if row.activity in {"invoke_llm", "invoke_tool"}
    )
    log = Counter((row.activity, row.turn, row.index, row.attempt, row.outcome) for row in _logged(evidence))
    differ = (history - log) + (log - history)
    return Judgement(
        "log",
        f"Temporal's history and the event log agree on all {history.total()} attempts at model and tool calls",
        not differ and bool(history),
        f"{differ.total()} differ" + "".join(f"; {row}" for row in differ),
    )


def killed_for_real(evidence: Evidence) -> Judgement | None:
    """The workers died of SIGKILL, as the parent that reaped them knows."""
    deaths = evidence.notes.deaths
    if evidence.notes.by_hand or not (deaths or evidence.notes.scripted):
        return None
    expected = 2 if evidence.notes.kill == "twice" else 1
    enough = len(deaths) == expected if evidence.notes.scripted else bool(deaths)
    return Judgement(
        "kill",
        f"the worker was killed with SIGKILL {TIMES.get(len(deaths), f'{len(deaths)} times')}",
        enough and set(deaths) == {-SIGKILL},
        f"exit statuses {list(deaths)}",
    )


def server_killed_for_real(evidence: Evidence) -> Judgement | None:
    """The server died of SIGKILL whenever the worker did, and another one took its place."""
    notes = evidence.notes
    if not notes.a2a or not notes.deaths:
        return None
    times = len(notes.server_deaths)
    return Judgement(
        "kill",
        f"the server was killed {TIMES.get(times, f'{times} times')} as well, and the customer came to the next one",
        times == len(notes.deaths) and len(set(notes.servers)) == times + 1 and set(notes.server_deaths) == {-SIGKILL},
        f"exit statuses {list(notes.server_deaths)} of servers {list(notes.servers)}",
    )


# --- what holds for the script -----------------------------------------------------------------------------------


def one_attempt_each(evidence: Evidence) -> Judgement:
    """P3: every activity has one attempt and completed it, but for the call that was cut off."""
    where = evidence.cut_call
    others = [row for row in evidence.history if where is None or row.call != where]
    cut = [(row.attempt, row.outcome == "completed") for row in evidence.history if row not in others]
    again = [row for row in others if row.outcome != "completed" or row.attempt != 1]
    distinct = Counter((row.activity, row.turn, row.index) for row in others if row.turn)
    held = not again and all(count == 1 for count in distinct.values()) and bool(evidence.history)
    if evidence.notes.kill == "waiting":
        claim = "every activity has exactly one attempt"
        held = held and not cut
    else:
        claim = "get_order's first attempt was cut off and its second completed; every other activity has one attempt"
        held = held and cut == [(1, False), (2, True)]
    return Judgement("P3", claim, held, f"{len(evidence.history)} attempts; others not completed at once: {len(again)}")


def get_order_once(evidence: Evidence) -> Judgement | None:
    """P3: without a kill in it, get_order was begun once."""
    if evidence.notes.kill == "twice":
        return None
    times = len(evidence.received("get_order"))
    return Judgement("P3", "get_order was begun once", times == 1, f"the world received it {times} times")


def cut_call_there(evidence: Evidence) -> Judgement | None:
    """P3: the kill did cut a call off, or nothing was shown."""
    if evidence.notes.kill == "waiting" or evidence.notes.held_key:
        return None
    return Judgement("P3", "get_order was begun twice with one key", held=False, found="no call was open at a kill")


def one_replacement(evidence: Evidence) -> Judgement:
    """P3: one replacement was asked for, begun and shipped."""
    received, shipments = evidence.received("ship_replacement"), evidence.snapshot["shipments"]
    begun = sum(len(row.begun) for row in evidence.effects if row.tool.endswith("ship_replacement"))
    held = len(received) == begun == len(shipments) == 1 and shipments[0]["order_id"] == BLENDER_ORDER
    return Judgement(
        "P3",
        f"ship_replacement was begun once, and one replacement was shipped for order {BLENDER_ORDER}",
        held,
        f"the world received {len(received)} calls and shipped {len(shipments)}; the ledger began {begun}",
    )


def nothing_else_touched(evidence: Evidence) -> Judgement:
    """P3: the other order was not touched, and no refund was ever asked for."""
    refunds = len(evidence.received("refund")) + len(evidence.snapshot["refunds"])
    named = sum(call.arguments.get("order_id") == KETTLE_ORDER for call in evidence.calls)
    named += sum(shipment["order_id"] == KETTLE_ORDER for shipment in evidence.snapshot["shipments"])
    same = evidence.snapshot["orders"] == list(evidence.notes.orders_before)
    return Judgement(
        "P3",
        f"the other order, {KETTLE_ORDER}, is untouched; refund was never called",
        same and not named and not refunds,
        f"orders unchanged: {same}; calls for {KETTLE_ORDER}: {named}; refunds: {refunds}",
    )


def answer_is_true(evidence: Evidence) -> Judgement:
    """P4: the tracking number that the customer was told is the one that the world gave."""
    texts = [e.reply.text for event in evidence.events for e in event.entries if isinstance(e, ModelEntry)]
    numbers = [str(shipment["tracking_number"]) for shipment in evidence.snapshot["shipments"]]
    told = bool(texts) and bool(numbers) and all(number in texts[-1] for number in numbers)
    return Judgement("P4", "the customer was told the world's tracking number", told, f"shipped: {numbers}")


def told_over_a2a(evidence: Evidence) -> Judgement | None:
    """P4: what came out of the front door is what the world gave."""
    if not evidence.notes.a2a:
        return None
    numbers = [str(shipment["tracking_number"]) for shipment in evidence.snapshot["shipments"]]
    told = bool(numbers) and all(number in evidence.notes.told for number in numbers)
    return Judgement(
        "P4", "the customer's A2A client has that tracking number", told, f"it has: {evidence.notes.told or 'nothing'}"
    )


TIMES = {1: "once", 2: "twice"}
PATH = ("submitted", "working", "input_required", "working", "completed")


def states_in_order(evidence: Evidence) -> Judgement:
    """P5: the task went through the states that A2A clients expect to see."""
    states = tuple(str(event.data["state"]) for event in evidence.of("task.status"))
    return Judgement("P5", _path(PATH), states == PATH, _path(states))


ALWAYS: tuple[Callable[[Evidence], Judgement | None], ...] = (
    every_message_once,
    reply_served_by_others,
    acted_on_at_once,
    every_answer_once,
    cut_call_same_key,
    writes_never_twice,
    no_effect_guessed,
    one_end,
    completed,
    gapless,
    quiet_waiting,
    witnesses_agree,
    killed_for_real,
    server_killed_for_real,
)

SCRIPTED: tuple[Callable[[Evidence], Judgement | None], ...] = (
    cut_call_there,
    get_order_once,
    one_attempt_each,
    one_replacement,
    nothing_else_touched,
    answer_is_true,
    told_over_a2a,
    states_in_order,
)


def _logged(evidence: Evidence) -> tuple[AttemptRow, ...]:
    return attempts_from_log(
        LogEvent(number=event.number, kind=event.kind, at_ms=event.at_ms, turn=event.turn, data=event.data)
        for event in evidence.events
    )


def pid_of(row: AttemptRow) -> int | None:
    """Return the process id in a worker's identity, None where the history names no worker."""
    pid = row.worker.partition("@")[0]
    return int(pid) if pid.isdecimal() else None


def _pids(pids: set[int | None]) -> str:
    return ", ".join(str(pid) for pid in sorted(pids, key=str)) or "none"


def _path(states: tuple[str, ...]) -> str:
    return " → ".join(state.upper() for state in states)
