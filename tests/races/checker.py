"""The verdict over a soak, from what its clients noted and what the outside saw; nothing that Perdure says is read.

Two things may be compared only where the clients know their order: one was acknowledged before the other was sent.
What was never acknowledged either way (a withdrawal whose answer was lost) is held against nobody.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.races.notes import Note
from tests.races.soaking import PAYS

GRACE_S = 1.0
"""How long after an acknowledged stop a call that was on its way may still reach the outside."""


@dataclass
class Message:
    """What the clients know of one message."""

    name: str
    lane: str
    sent: float
    acknowledged: float
    moves: list[Note] = field(default_factory=list)
    taken_back: bool = False
    perhaps_taken_back: bool = False

    def place(self) -> tuple[str, float, float] | None:
        """Return its lane, and from when to when it came there; None where nobody knows for certain."""
        moves = [move for move in self.moves if move["outcome"] != "refused"]
        if not moves:
            return self.lane, self.sent, self.acknowledged
        last = max(moves, key=lambda move: float(move["sent"]))
        if any(move["outcome"] == "unknown" or (move is not last and move["acked"] > last["sent"]) for move in moves):
            return None
        return "steer", last["sent"], last["acked"]


@dataclass
class Verdict:
    """What is broken, in words, and how much there was to break."""

    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(clients: Sequence[Note], outside: Sequence[Note], effects: Sequence[tuple[str, str]]) -> Verdict:
    """Judge all tasks. `effects` are the outside's own: name and key of each."""
    verdict = Verdict()
    for task in dict.fromkeys(str(note["task"]) for note in clients):
        own = [note for note in clients if note["task"] == task]
        seen = [note for note in outside if note["task"] == task]
        messages = _messages(own)
        verdict.counts["tasks"] += 1
        verdict.counts["messages"] += len(messages)
        verdict.counts.update(f"{note['op']}s {note['outcome']}" for note in own if "outcome" in note)
        judges: tuple[Iterable[str], ...] = (
            _transcripts(messages, [list(note["said"]) for note in seen if note["what"] == "model"]),
            _calls(task, seen, effects),
            _approvals(own, {name for name, key in effects if key.startswith(f"{task}/")}),
            _stops(own, seen, verdict.counts),
            _ends([note for note in own if note["op"] == "event"]),
            _answers(own, [list(note["answers"]) for note in seen if note["what"] == "model"]),
        )
        verdict.broken += [f"{task}: {words}" for found in judges for words in found]
    return verdict


def _messages(own: Sequence[Note]) -> dict[str, Message]:
    found: dict[str, Message] = {}
    for note in own:
        if note["op"] == "send" and note["outcome"] == "ok":
            found[note["name"]] = Message(note["name"], note["lane"], note["sent"], note["acked"])
    for note in own:
        message = found.get(str(note.get("name")))
        if message is None:
            continue
        if note["op"] == "steer":
            message.moves.append(note)
        elif note["op"] == "withdraw":
            message.taken_back |= note["outcome"] == "ok"
            message.perhaps_taken_back |= note["outcome"] == "unknown"
    return found


def _transcripts(messages: dict[str, Message], asked: Sequence[list[str]]) -> Iterator[str]:
    """P1: every message that stands is told to the model once, in the order of its lane, and stays where it is."""
    told = max(asked, key=len, default=[])
    for said in asked:
        if said != told[: len(said)]:
            yield f"P1: the model was told {said}, and otherwise {told}"
    for name, count in Counter(told).items():
        if count > 1:
            yield f"P1: {name} was told {count} times"
    for message in messages.values():
        if message.taken_back and message.name in told:
            yield f"R6: {message.name} was taken back, and told"
        if not (message.taken_back or message.perhaps_taken_back) and message.name not in told:
            yield f"P1: {message.name} was lost"
    yield from _out_of_order([message for message in messages.values() if message.name in told], told)


def _out_of_order(messages: Sequence[Message], told: Sequence[str]) -> Iterator[str]:
    lanes: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for message in messages:
        place = message.place()
        if place is not None:
            lane, earliest, latest = place
            lanes[lane].append((earliest, latest, message.name))
    for lane, came in lanes.items():
        for _, latest, name in came:
            for earliest, _, other in came:
                if latest < earliest and told.index(name) > told.index(other):
                    yield f"P1: {name} came to the {lane} lane before {other}, and was told after it"


def _calls(task: str, seen: Sequence[Note], effects: Sequence[tuple[str, str]]) -> Iterator[str]:
    """P3: one effect per message, and no key arrives twice."""
    own = [(name, key) for name, key in effects if key.startswith(f"{task}/")]
    for name, count in Counter(name for name, _ in own).items():
        if count > 1:
            yield f"P3: {name} had {count} effects"
    for key, count in Counter(note["key"] for note in seen if note["what"] == "call").items():
        if count > 1:
            yield f"P3: {key} was begun {count} times"


def _approvals(own: Sequence[Note], acted: set[str]) -> Iterator[str]:
    """B10, B22: what needs an approval has an effect only where somebody gave one, and one word of two counts."""
    words: dict[str, list[Note]] = defaultdict(list)
    for note in own:
        if note["op"] == "decide":
            words[note["name"]].append(note)
    for name, said in words.items():
        taken = [note for note in said if note["outcome"] == "ok"]
        if len(taken) > 1:
            yield f"B22: the approval of {name} took {len(taken)} words"
        if name in acted and any(not note["agrees"] for note in taken):
            yield f"B10: {name} was declined, and had an effect"
    for name in sorted(each for each in acted if PAYS in each):
        if not any(note["agrees"] and note["outcome"] != "refused" for note in words[name]):
            yield f"B10: {name} had an effect that nobody approved"


def _stops(own: Sequence[Note], seen: Sequence[Note], counts: Counter[str]) -> Iterator[str]:
    """P9: nothing reaches the outside later than a moment after a stop, until somebody gives new work."""
    for stop in own:
        if stop["op"] != "stop" or stop["outcome"] != "ok":
            continue
        # What was acknowledged before the stop was asked for cannot start anything after it.
        new = [note["sent"] for note in own if note["op"] in {"send", "steer"} and note["acked"] > stop["sent"]]
        until = min(new, default=float("inf"))
        after = stop["acked"] + GRACE_S
        counts["stops that could be judged"] += until > after
        for note in seen:
            if after < note["at"] < until:
                late_s = note["at"] - stop["acked"]
                yield f"P9: a {note['what']} reached the outside {late_s:.2f} s after a stop: {note}"


def _ends(events: Sequence[Note]) -> Iterator[str]:
    """P5, P6: a client that followed saw every number once, and one end of each run."""
    numbers = [note["number"] for note in events]
    for before, number in pairwise([0, *numbers]):
        if number != before + 1:
            yield f"P6: event {number} came after {before}"
    started = [note["run"] for note in events if note["kind"] == "run.started"]
    ended = [note["run"] for note in events if note["kind"] == "run.ended"]
    if started != list(range(1, len(started) + 1)) or ended != started:
        yield f"P5: runs {started} began, and {ended} ended"


def _answers(own: Sequence[Note], told: Sequence[list[str]]) -> Iterator[str]:
    """A question takes one answer, which the model is told once; no other is told at all."""
    most: list[str] = max(told, key=len, default=[])
    heard = Counter(most)
    asked: dict[str, list[Note]] = defaultdict(list)
    for note in own:
        if note["op"] == "answer":
            asked[note["help"]].append(note)
    for help_id, answers in asked.items():
        taken = [note["text"] for note in answers if note["outcome"] == "ok"]
        if len(taken) > 1:
            yield f"question {help_id} took {taken}"
        for note in answers:
            if note["outcome"] == "ok" and heard[note["text"]] != 1:
                yield f"P1: the answer {note['text']} was taken and told {heard[note['text']]} times"
            if note["outcome"] == "refused" and heard[note["text"]]:
                yield f"the answer {note['text']} was refused, and told"
