"""What must have come of a call whose worker was killed at a point, as the outside saw it.

Written from the design and from nothing that the harness says: which requests may have reached the outside, which
effects stand, and what the model was told.
"""

from dataclasses import dataclass

from tests.crash.world import World

UNKNOWN = "unknown: "


@dataclass(frozen=True)
class Outcome:
    """What the outside and the answer must show: requests and effects by their keys' generation, 1 or 2."""

    answer: str
    arrivals: tuple[int, ...]
    effects: tuple[int, ...]
    asked_first: int = 1


TOLD = {"read": "ok: read", "idempotent": "ok: changed", "checked": "ok: changed", "unchecked": "ok: changed"}


def _effects(effect: str, generation: int = 1) -> tuple[int, ...]:
    return () if effect == "read" else (generation,)


def expected(point: str, effect: str) -> Outcome:
    """Return what must come of a task of that class that was killed at that point once."""
    plain = Outcome(TOLD[effect], (1,), _effects(effect))
    match point, effect:
        case "tool.begun", "checked":
            # Nothing reached the outside; the check closed the key, and the call began anew under the next.
            return Outcome(TOLD[effect], (2,), (2,))
        case "tool.begun", "unchecked":
            # P4: it did not happen, but nobody can know that.
            return Outcome(UNKNOWN, (), ())
        case (("tool.inside" | "tool.after_effect"), ("read" | "idempotent")):
            return Outcome(TOLD[effect], (1, 1), _effects(effect))
        case (("tool.inside" | "tool.after_effect"), "unchecked"):
            return Outcome(UNKNOWN, (1,), (1,))
        case (("model.inside" | "model.replied"), _):
            return Outcome(plain.answer, plain.arrivals, plain.effects, asked_first=2)
        case _:
            # Killed before anything began, or after everything is recorded: as if nobody had been killed.
            return plain


def seen(world: World, task_id: str, answer: str) -> Outcome:
    """Return what the outside saw of a task, and what its customer was told."""
    return Outcome(
        UNKNOWN if answer.startswith(UNKNOWN) else answer,
        _generations(world.arrivals(task_id), task_id),
        _generations(world.effects(task_id), task_id),
        world.asked(task_id).count(1),
    )


def _generations(keys: list[str], task_id: str) -> tuple[int, ...]:
    first = f"{task_id}/1/0"
    return tuple(1 if key == first else int(key.removeprefix(f"{first}/")) for key in keys)
