"""What the clients know of one task: its messages, what was asked of it, and what must be over by when.

Two things may be compared only where the clients know their order: one was acknowledged before the other was sent.
What was never acknowledged either way (a withdrawal whose answer was lost) is held against nobody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perdure.core import limits
from tests.races.notes import Note

TOLD_WITHIN_S = 60.0
"""How long a message may take to the model, kills and all that goes before it included. Seconds are the rule."""


@dataclass
class Message:
    """What the clients know of one message. `outcome` is that of its sending: `ok`, `refused` or `unknown`."""

    name: str
    lane: str
    outcome: str
    sent: float
    acknowledged: float
    moves: list[Note] = field(default_factory=list)
    taken_back: bool = False
    perhaps_taken_back: bool = False

    @property
    def stands(self) -> bool:
        """Whether it was acknowledged, and certainly not taken back."""
        return self.outcome == "ok" and not self.taken_back and not self.perhaps_taken_back

    def place(self) -> tuple[str, float, float] | None:
        """Return its lane, and from when to when it came there; None where nobody knows for certain."""
        moves = [move for move in self.moves if move["outcome"] != "refused"]
        if self.outcome != "ok":
            return None
        if not moves:
            return self.lane, self.sent, self.acknowledged
        last = max(moves, key=lambda move: float(move["sent"]))
        if any(move["outcome"] == "unknown" or (move is not last and move["acked"] > last["sent"]) for move in moves):
            return None
        return "steer", last["sent"], last["acked"]


class Known:
    """One task, from the clients' notes of it. `killed` are the moments at which a worker was."""

    def __init__(self, own: Sequence[Note], killed: Sequence[float] = ()) -> None:
        self.own = own
        self.killed = killed
        self.messages: dict[str, Message] = {}
        for note in own:
            if note["op"] == "send":
                given = (note["name"], note["lane"], note["outcome"], note["sent"], note["acked"])
                self.messages[note["name"]] = Message(*given)
        for note in own:
            message = self.messages.get(str(note.get("name")))
            if message is not None and note["op"] == "steer":
                message.moves.append(note)
            elif message is not None and note["op"] == "withdraw":
                message.taken_back |= note["outcome"] == "ok"
                message.perhaps_taken_back |= note["outcome"] == "unknown"

    def of(self, op: str) -> list[Note]:
        """Return what was asked, or seen, by that name."""
        return [note for note in self.own if note["op"] == op]

    def asked(self, op: str) -> list[Note]:
        """Return what was asked by that name and not refused: it may have taken effect."""
        return [note for note in self.of(op) if note["outcome"] != "refused"]

    @property
    def ends(self) -> list[Note]:
        """Return the ends of its runs, as its follower saw them."""
        return [note for note in self.of("event") if note["kind"] == "run.ended"]

    def crash_looped(self, end: Note) -> bool:
        """Whether a run ended because its workers were killed: enough of them were since the run before it began."""
        if (end["end"], end["reason"]) != ("failed", "crash_loop"):
            return False
        began = [n["at"] for n in self.of("event") if n["kind"] == "run.started" and n["run"] >= end["run"] - 1]
        since, until = float(min(began, default=0.0)), float(end["at"])
        return sum(since <= at <= until for at in self.killed) >= limits.CRASHES_MAX

    def halted(self, since: float, until: float = float("inf")) -> bool:
        """Whether anything that parks messages may have come between: a stop, or deaths up to their limit (R9)."""
        stops = [(note["sent"], note["acked"]) for note in self.asked("stop")]
        loops = [(note["at"] - TOLD_WITHIN_S, note["at"]) for note in self.ends if self.crash_looped(note)]
        return any(acked >= since and sent <= until for sent, acked in [*stops, *loops])

    def due(self) -> Iterator[tuple[str, float]]:
        """Yield each message that must be told, and by when.

        It, or one that came after it and takes along what is parked, was acknowledged, stands, and nobody stopped the
        task after it. Its questions are answered at once (`soak.py`), so that none of them holds it up for long.
        """
        wakes = [
            (note["sent"], note["acked"]) for op in ("send", "steer") for note in self.own if self._wakes(note, op)
        ]
        for message in self.messages.values():
            if not message.stands:
                continue
            moments = [
                acked + TOLD_WITHIN_S
                for sent, acked in wakes
                if (sent >= message.acknowledged or (sent, acked) == (message.sent, message.acknowledged))
                and not self.halted(sent, acked + TOLD_WITHIN_S)
            ]
            if moments:
                yield message.name, min(moments)

    def _wakes(self, note: Note, op: str) -> bool:
        message = self.messages.get(str(note.get("name")))
        taken = bool(note["op"] == op and note["outcome"] == "ok")
        return taken and message is not None and message.stands


def known(clients: Sequence[Note]) -> dict[str, Known]:
    """Return every task, by its id."""
    killed = [float(note["at"]) for note in clients if note["op"] == "kill" and note["kind"] == "worker"]
    notes: dict[str, list[Note]] = {}
    for note in clients:
        if note["op"] != "kill":
            notes.setdefault(str(note["task"]), []).append(note)
    return {task: Known(own, killed) for task, own in notes.items()}


def first_told(seen: Sequence[Note]) -> dict[str, float]:
    """Return when the model was first told each message."""
    found: dict[str, float] = {}
    for note in seen:
        if note["what"] == "model":
            for name in note["said"]:
                found[name] = min(found.get(name, float("inf")), float(note["at"]))
    return found


def owed(clients: Sequence[Note], outside: Sequence[Note]) -> dict[str, float]:
    """Return the messages that must be told and are not yet, each with the moment at which its time is over."""
    told = first_told(outside)
    return {name: due for task in known(clients).values() for name, due in task.due() if name not in told}
