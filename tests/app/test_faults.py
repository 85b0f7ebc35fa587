"""The hook that kills its own process: real processes, really killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.app.faults import armed, once_paths
from perdure.core.errors import ConfigurationError
from perdure.core.faults import read_faults

REACHING = """
import os
from perdure.app.faults import armed
from perdure.core.faults import reach
with armed(os.environ):
    for place in range(1, 4):
        print(place, flush=True)
        reach("tool.begun", "refund" if place > 1 else "notify")
reach("tool.begun", "refund")
print("lived", flush=True)
"""


def told(**environment: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", REACHING],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("fault", "places"),
    [("tool.begun", 1), ("tool.begun@2", 2), ("tool.begun:refund", 2), ("tool.done,tool.begun:refund@2", 3)],
)
def test_a_process_dies_exactly_there(fault: str, places: int) -> None:
    code, printed = told(PERDURE_FAULT=fault)
    assert code == -signal.SIGKILL
    assert len(printed) == places


def test_what_is_not_reached_kills_nobody() -> None:
    assert told(PERDURE_FAULT="tool.begun:refund@3,model.inside")[1][-1] == "lived"
    assert told(PERDURE_FAULT="")[1][-1] == "lived"


def test_once_over_all_processes(tmp_path: Path) -> None:
    once = tmp_path / "died"
    code, _ = told(PERDURE_FAULT="tool.begun@2", PERDURE_FAULT_ONCE=str(once))
    assert code == -signal.SIGKILL
    assert json.loads(once.read_text())["fault"] == "tool.begun@2"
    code, printed = told(PERDURE_FAULT="tool.begun@2", PERDURE_FAULT_ONCE=str(once))
    assert (code, printed[-1]) == (0, "lived")


def test_each_of_several_faults_happens_once(tmp_path: Path) -> None:
    faults, once = "tool.begun:notify,tool.begun:refund", tmp_path / "died"
    ends = [told(PERDURE_FAULT=faults, PERDURE_FAULT_ONCE=str(once))[0] for _ in range(3)]
    assert ends == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert all(path.exists() for path in once_paths(once, read_faults(faults)))


def test_an_armed_worker_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with armed({"PERDURE_FAULT": "tool.begun:refund@2"}):
        pass
    assert "this process kills itself at tool.begun:refund@2" in caplog.text


def test_a_file_without_a_folder_is_refused(tmp_path: Path) -> None:
    given = {"PERDURE_FAULT": "tool.begun", "PERDURE_FAULT_ONCE": str(tmp_path / "none" / "died")}
    with pytest.raises(ConfigurationError, match=r"PERDURE_FAULT_ONCE: .* is no folder"), armed(given):
        pass
