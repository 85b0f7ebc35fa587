"""Judges of what the model was told: every message once, in order and in time, and nothing that nobody sent."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.races import known
from tests.races.known import Known, Message, first_told
from tests.races.notes import Note


def judge_messages(task: Known, seen: Sequence[Note]) -> Iterator[str]:
    """P1: every message that stands is told to the model once, in the order of its lane, and stays where it is."""
    asked = [list(note["said"]) for note in seen if note["what"] == "model"]
    told: list[str] = max(asked, key=len, default=[])
    for said in asked:
        if said != told[: len(said)]:
            yield f"P1: the model was told {said}, and otherwise {told}"
    for name, count in Counter(told).items():
        if count > 1:
            yield f"P1: {name} was told {count} times"
        if name not in task.messages:
            yield f"P1: {name} was told, and nobody sent it"
    for message in task.messages.values():
        yield from _fate(message, message.name in told)
    yield from _late(task, first_told(seen))
    yield from _out_of_order([message for message in task.messages.values() if message.name in told], told)


def _fate(message: Message, told: bool) -> Iterator[str]:
    """Nothing may refuse a message in a task that is open; one whose sending was refused after a loss may be both."""
    if message.outcome == "refused":
        yield f"P1: {message.name} was refused{', and told' if told else ''}"
    if message.taken_back and told:
        yield f"R6: {message.name} was taken back, and told"
    if message.stands and not told:
        yield f"P1: {message.name} was lost"


def _late(task: Known, told: dict[str, float]) -> Iterator[str]:
    """R7, R9: what nobody stopped starts by itself; no later message is needed to wake it."""
    for name, due in task.due():
        at = told.get(name, due)
        if at > due:
            stood_s = at - due + known.TOLD_WITHIN_S
            yield f"R7: {name} stood for {stood_s:.0f} s before the model was told, and nobody stopped it"


def _out_of_order(messages: Sequence[Message], told: Sequence[str]) -> Iterator[str]:
    places = [(message.name, place) for message in messages if (place := message.place()) is not None]
    lanes: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for name, (lane, earliest, latest) in places:
        lanes[lane].append((earliest, latest, name))
    for lane, came in lanes.items():
        for _, latest, name in came:
            for earliest, _, other in came:
                if latest < earliest and told.index(name) > told.index(other):
                    yield f"P1: {name} came to the {lane} lane before {other}, and was told after it"
    for _, latest, name in lanes["steer"]:
        for earliest, _, other in lanes["queue"]:
            if latest < earliest and told.index(name) > told.index(other):
                yield f"R4: {name} was in the steer lane before {other} was queued, and was told after it"
