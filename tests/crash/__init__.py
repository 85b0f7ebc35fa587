"""Crashes at exact instructions."""

import pytest

pytest.register_assert_rewrite("tests.crash.arena", "tests.temporal.bench")
