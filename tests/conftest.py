"""Shared by all tests. Helpers of tests that assert are rewritten like tests, whoever imports them first."""

import pytest

pytest.register_assert_rewrite("tests.crash.arena", "tests.temporal.bench")
