"""What `--keep` leaves in its folder: everything from which a trial can be judged again, or disputed.

`data/` is the trials' own data folder (Temporal, store, logs). Beside it a folder for each trial: the schedule and the
kills done, the outside world as the probe told it, the task's events, the ledger, Temporal's histories as the server
recorded them, and the verdict.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory

from perdure.cli.chaos.evidence import Evidence
from perdure.cli.chaos.verdict import Judgement
from perdure.cli.output import event_object


async def keep(folder: Path, client: Client, evidence: Evidence, judgements: Sequence[Judgement]) -> None:
    """Write a trial's folder (0700) under `folder`."""
    name = "undisturbed" if evidence.seed is None else f"{evidence.mode}-seed-{evidence.seed}"
    place = folder / name
    place.mkdir(mode=0o700)
    _write(
        place / "schedule.json",
        {
            "seed": evidence.seed,
            "mode": evidence.mode,
            "planned": [planned.model_dump() for planned in evidence.plan],
            "done": [kill.model_dump() for kill in evidence.kills],
        },
    )
    world = None if evidence.world is None else [applied.model_dump() for applied in evidence.world]
    _write(place / "world.json", world)
    _write(place / "ledger.json", [row.model_dump(mode="json") for row in evidence.effects])
    _write(place / "verdict.json", [vars(judgement) for judgement in judgements])
    lines = "".join(json.dumps(event_object(event)) + "\n" for event in evidence.events)
    (place / "events.jsonl").write_text(lines)
    for number, history in enumerate(await _histories(client, evidence.task_id), 1):
        (place / f"history-{number}.json").write_text(history.to_json())


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


async def _histories(client: Client, task_id: str) -> list[WorkflowHistory]:
    """Return the task's histories, its first workflow run's first."""
    found: list[WorkflowHistory] = []
    run_id: str | None = None
    while True:
        history = await client.get_workflow_handle(task_id, run_id=run_id).fetch_history()
        found.insert(0, history)
        run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not run_id:
            return found
