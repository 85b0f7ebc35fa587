"""What is killed when: decided before anything runs, from the seed alone, so that a trial can be made again.

A kill waits a random time within `every` after the one before it (the first after the task's start). Which of the
idle workers it takes when none is busy is drawn here too; where there is a busy worker it takes that one, because a
kill that hits nothing proves nothing.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

from perdure.core.content import Frozen
from perdure.core.errors import InvalidInput

Target = Literal["worker", "app", "temporal"]
KILLS_MAX: Final = 1000
SEEDS_MAX: Final = 1000


class PlannedKill(Frozen):
    """One kill: `gap_s` after the one before it. `draw` picks among equals."""

    gap_s: float
    target: Target
    draw: int


@dataclass(frozen=True)
class Every:
    """The bounds, in seconds, within which the time from one kill to the next is drawn."""

    least_s: float
    most_s: float

    @classmethod
    def parse(cls, text: str) -> "Every":
        """Read `2-6`, or one number for always the same; raises `InvalidInput`."""
        least, dash, most = text.partition("-")
        try:
            bounds = cls(float(least), float(most if dash else least))
        except ValueError as error:
            raise InvalidInput("--every", f"{text!r} is no range of seconds; write it as 2-6 or 0.5") from error
        if not 0 < bounds.least_s <= bounds.most_s < float("inf"):
            raise InvalidInput("--every", f"{text!r} is not a range of seconds above 0, the smaller one first")
        return bounds


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read `1`, `1-5` or `1,4,9`; raises `InvalidInput`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InvalidInput("--seed", f"{text!r} names no seeds; write 1, 1-5 or 1,4,9")
        numbers = range(int(first), int(last if dash else first) + 1)
        if not 0 < len(numbers) <= SEEDS_MAX:
            raise InvalidInput("--seed", f"{part.strip()!r} is empty or more than {SEEDS_MAX} seeds; write it as 1-5")
        seeds.extend(numbers)
    return tuple(dict.fromkeys(seeds))


def planned(seed: int, kills: int, every: Every, targets: tuple[Target, ...]) -> tuple[PlannedKill, ...]:
    """Return the schedule of this seed; the same arguments give the same schedule on every machine."""
    drawing = random.Random(seed)  # noqa: S311 - a schedule must be repeatable, not secret
    return tuple(
        PlannedKill(
            gap_s=round(drawing.uniform(every.least_s, every.most_s), 3),
            target=drawing.choice(targets),
            draw=drawing.randrange(1 << 16),
        )
        for _ in range(kills)
    )
