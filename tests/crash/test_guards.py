"""Guards are executable: without each of them, the tests that protect it fail, and for the right reason.

The protecting tests run in a pytest of their own, in which (and in whose worker processes) the guard is taken out;
`without.py` holds what that means. The guards of the core are taken out in `tests/core/test_guards.py`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.without import GUARD, GUARDS

ROOT = Path(__file__).parents[2]
WITHIN_S = 120.0

POINTS = "tests/crash/test_points.py::test_killed_at"
PROTECTED = {
    "ledger lookup": (f"{POINTS}[tool.done-unchecked]", "was begun 2 times"),
    "begun": (f"{POINTS}[tool.after_effect-unchecked]", "was begun 2 times"),
    "reply lookup": (f"{POINTS}[model.recorded-read]", "asked_first=2"),
    "stop fence": ("tests/crash/test_fence.py::test_an_attempt_that_hears_of_no_stop_is_fenced", "'touch', "),
    "sticky reset": (
        "tests/supervisor/test_deaths.py::test_p10_no_workflow_task_is_kept_for_a_dead_worker",
        "'TASK_QUEUE_KIND_STICKY' == 'TASK_QUEUE_KIND_NORMAL'",
    ),
    "crash limit": (
        "tests/crash/test_limit.py::test_r12_a_task_that_kills_its_worker_each_time_ends_at_its_limit",
        "assert (4, '') == (3, 'crash_loop')",
    ),
    "contiguous prefix": (
        "tests/store/test_log.py::test_readers_get_the_contiguous_prefix_only[sqlite]",
        "assert [1, 2, 3, 4, 5, 6, 8, ",
    ),
}
"""From a guard to a test that protects it, and what that test finds without it."""


def test_every_guard_has_its_test() -> None:
    assert set(PROTECTED) == set(GUARDS)


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
def test_without_it_the_test_fails(guard: str, tmp_path: Path) -> None:
    test, found = PROTECTED[guard]
    told = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.crash.without", "-p", "no:cacheprovider", "-vv"),
            *("--basetemp", str(tmp_path / "inner"), test),
        ],
        cwd=ROOT,
        env={**os.environ, GUARD: guard},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert told.returncode == pytest.ExitCode.TESTS_FAILED, told.stdout + told.stderr
    assert "passed" not in told.stdout.splitlines()[-1]
    assert found in told.stdout, told.stdout
