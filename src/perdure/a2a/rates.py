"""How much at once, and how much in a time, by name. Pure: the time is an argument.

A rate is a bucket per name that fills at a steady pace: a burst is taken from it, and the pace is what remains. What is
taken is forgotten as soon as the bucket is full again, so only those who ask much are remembered at all.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass


class Rate:
    """Lets each name do something `per_s` times a second, and `burst` times at once."""

    def __init__(self, per_s: float, burst: float, names_max: int) -> None:
        self._per_s = per_s
        self._burst = max(1.0, burst)
        self._names_max = names_max
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now_s: float) -> float:
        """Take one and return 0, or return in how many seconds there will be one."""
        left, since_s = self._buckets.pop(name, (self._burst, now_s))
        left = min(self._burst, left + (now_s - since_s) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[name] = (left if wait_s else left - 1, now_s)  # at the end: the first is the one quiet longest
        while len(self._buckets) > self._names_max:
            del self._buckets[next(iter(self._buckets))]
        return wait_s


class NoPlaceError(Exception):
    """All places are taken: of this name, or (`in_all`) altogether."""

    def __init__(self, in_all: bool) -> None:
        super().__init__("no place is free")
        self.in_all = in_all


@dataclass
class Places:
    """Places that are taken and given back, so many in all and so many for each name."""

    in_all: int
    per_name: int

    def __post_init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._all = 0

    @contextlib.contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Hold a place; raises `NoPlaceError`."""
        own = self._taken.get(name, 0)
        if self._all >= self.in_all:
            raise NoPlaceError(in_all=True)
        if own >= self.per_name:
            raise NoPlaceError(in_all=False)
        self._taken[name] = own + 1
        self._all += 1
        try:
            yield
        finally:
            self._all -= 1
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]
