"""The wall clock, read at the edges only; everything else takes the time as an argument."""

import time


def now_ms() -> int:
    """Return the wall clock in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
