"""Shared by all tests. Helpers of tests that assert are rewritten like tests, whoever imports them first."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.crash.arena", "tests.temporal.bench")

HANGS_AFTER_S = int(os.environ.get("PERDURE_TEST_HANGS_AFTER_S", "900"))
"""Far beyond any test but those with all seeds: one that hangs fails, and its trace says where."""


class Hanging(Exception):
    """A test did not end."""


def waiting() -> set[asyncio.Task[Any]]:
    """Return what waits in the loop that runs: where a test hangs is seen there, and not in the loop's own stack."""
    try:
        return asyncio.all_tasks()
    except RuntimeError:  # no loop runs
        return set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if os.environ.get("PERDURE_TEST_FULL") == "1":
        return (yield)

    def fail(number: int, frame: FrameType | None) -> None:
        print(f"{item.nodeid} did not end within {HANGS_AFTER_S} s", file=sys.stderr)
        for task in waiting():
            task.print_stack()
        raise Hanging(f"{item.nodeid} did not end within {HANGS_AFTER_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(HANGS_AFTER_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
