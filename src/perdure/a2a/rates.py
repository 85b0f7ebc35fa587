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
        left = self._left(name, now_s)
        wait_s = self._until_one(left)
        self._keep(name, left if wait_s else left - 1, now_s)
        return wait_s

    def wait_s(self, name: str, now_s: float) -> float:
        """Return in how many seconds there will be one, 0 where there is one now; take none."""
        return self._until_one(self._left(name, now_s))

    def owe(self, name: str, now_s: float) -> None:
        """Take one, also where there is none: what comes after waits until it is made up for."""
        self._keep(name, self._left(name, now_s) - 1, now_s)

    def _left(self, name: str, now_s: float) -> float:
        left, since_s = self._buckets.get(name, (self._burst, now_s))
        return min(self._burst, left + (now_s - since_s) * self._per_s)

    def _until_one(self, left: float) -> float:
        return 0.0 if left >= 1 else (1 - left) / self._per_s

    def _keep(self, name: str, left: float, now_s: float) -> None:
        self._buckets.pop(name, None)
        self._buckets[name] = (left, now_s)  # at the end: the first is the one quiet longest
        while len(self._buckets) > self._names_max:
            del self._buckets[next(iter(self._buckets))]


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
