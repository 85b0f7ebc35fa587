"""Shared by all tests. Helpers of tests that assert are rewritten like tests, whoever imports them first."""

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

pytest.register_assert_rewrite("tests.crash.arena", "tests.temporal.bench")

HANGS_AFTER_S = 900
"""Far beyond any test but those with all seeds: one that hangs fails, and its trace says where."""


class Hanging(Exception):
    """A test did not end."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if os.environ.get("PERDURE_TEST_FULL") == "1":
        return (yield)

    def fail(number: int, frame: FrameType | None) -> None:
        raise Hanging(f"{item.nodeid} did not end within {HANGS_AFTER_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(HANGS_AFTER_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
