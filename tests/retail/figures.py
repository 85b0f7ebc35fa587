"""What a storm came to, in figures: kills, what they cut off, and how soon it went on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from perdure import TaskEvent
from tests.retail.killing import Kill
from tests.retail.shop import ONCE_NAMES, Arrival
from tests.retail.verdict import Ended


@dataclass(frozen=True)
class Times:
    """Milliseconds from a kill to what followed for each call that it cut off."""

    count: int
    p50_ms: int
    p95_ms: int
    max_ms: int

    @classmethod
    def of(cls, times_ms: Iterable[int]) -> "Times":
        """Sum up; zeros when there is nothing."""
        ordered = sorted(times_ms)
        if not ordered:
            return cls(0, 0, 0, 0)
        p50_ms, p95_ms = (ordered[int((len(ordered) - 1) * share)] for share in (0.5, 0.95))
        return cls(len(ordered), p50_ms, p95_ms, ordered[-1])


@dataclass(frozen=True)
class Figures:
    """A run's summary. `checks_…` count what the shop said of `once` calls whose outcome nobody had heard.

    `kills_hit` counts kills that cut a call off, `once_hit` those that met an open `once` call, by whom they killed.
    """

    seed: int
    conversations: int
    wall_s: float
    kills: int
    kills_hit: int
    calls_cut: int
    shop_calls: int
    repeated_begins: int
    checks_happened: int
    checks_closed: int
    failures: dict[str, int]
    kill_to_next_attempt: Times
    kill_to_next_call: Times
    killed: dict[str, int]
    once_hit: dict[str, int]
    worker_kill_to_next_attempt: Times
    app_kill_to_next_attempt: Times

    def lines(self) -> list[str]:
        """Return the summary for a terminal."""
        return [f"{name}: {value}" for name, value in asdict(self).items()]


def figures(seed: int, wall_s: float, kills: Sequence[Kill], ended: Sequence[Ended]) -> Figures:
    """Sum up from the shops' notes and the tasks' logs."""
    events = {conversation.task_id: conversation.events for conversation in ended}
    arrivals = {conversation.task_id: conversation.shop.arrivals() for conversation in ended}
    cut = [(kill, arrival) for kill in kills for arrival in kill.cut]
    attempts: dict[str, list[int]] = {"worker": [], "app": []}
    calls = []
    for kill, arrival in cut:
        task_id = arrival.key.split("/")[0]
        attempts[kill.target] += _next_attempt(kill, arrival, events.get(task_id, ()))
        calls += _came_again(kill, arrival, arrivals.get(task_id, []))
    unheard = [arrival.key for _, arrival in cut if arrival.tool in ONCE_NAMES]
    applied = {line.key for rows in ended for line in rows.shop.log() if line.outcome == "applied"}
    every = [event for rows in events.values() for event in rows]
    every_arrival = [arrival for rows in arrivals.values() for arrival in rows]
    return Figures(
        seed=seed,
        conversations=len(ended),
        wall_s=round(wall_s, 1),
        kills=len(kills),
        kills_hit=sum(bool(kill.cut) for kill in kills),
        calls_cut=len(cut),
        shop_calls=len(every_arrival),
        repeated_begins=len(every_arrival) - len({_call_of(arrival.key) for arrival in every_arrival}),
        checks_happened=sum(key in applied for key in unheard),
        checks_closed=sum(event.kind == "tool.key_closed" for event in every),
        failures=dict(Counter(f"{event.kind} {event.data['failure']}" for event in every if "failure" in event.data)),
        kill_to_next_attempt=Times.of([*attempts["worker"], *attempts["app"]]),
        kill_to_next_call=Times.of(calls),
        killed=dict(Counter(kill.target for kill in kills)),
        once_hit=dict(Counter(kill.target for kill in kills if kill.once)),
        worker_kill_to_next_attempt=Times.of(attempts["worker"]),
        app_kill_to_next_attempt=Times.of(attempts["app"]),
    )


def _next_attempt(kill: Kill, arrival: Arrival, events: Iterable[TaskEvent]) -> list[int]:
    """Return how long after the kill the call's next attempt was scheduled; empty when none was."""
    turn, index = _call_of(arrival.key)[1:]
    times = (
        event.at_ms - kill.at_ms
        for event in events
        if event.kind == "tool.started"
        and (event.turn, event.data.get("index")) == (turn, index)
        and event.at_ms >= kill.at_ms
    )
    return list(islice(times, 1))


def _came_again(kill: Kill, arrival: Arrival, arrivals: Iterable[Arrival]) -> list[int]:
    """Return how long after the kill the shop saw the call again; empty when it did not have to be made again."""
    times = (
        again.arrived_ms - kill.at_ms
        for again in arrivals
        if _call_of(again.key) == _call_of(arrival.key) and again.arrived_ms > kill.at_ms
    )
    return list(islice(times, 1))


def _call_of(key: str) -> tuple[str, int, int]:
    """Return the call that a key stands for, whichever of its keys it is."""
    task_id, turn, index = key.split("/")[:3]
    return task_id, int(turn), int(index)
