"""Fault points in workflow code: silent while history is replayed, so that a death happens once, not at each replay."""

from temporalio import workflow

from perdure.core import faults


def reach(point: str, *concerns: str) -> None:
    """Say that the workflow reached a point, unless it only replays what happened."""
    if not workflow.unsafe.is_replaying():
        faults.reach(point, *concerns)
