"""R15: every state shape that was ever written can still be read, and goes on from where it stood.

The samples stay for ever. `python -m tests.core.test_state_samples` writes those that are missing; it never changes
one that is there.
"""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from perdure.core.agent import ModelSpec
from perdure.core.commands import CallModel, CallTool, Persist
from perdure.core.machine import outstanding
from perdure.core.state import STATE_SCHEMA, TaskState
from tests.core.task import Task, ask, asking, call

FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SAMPLES = Path(__file__).parent / "samples"


def made() -> dict[str, TaskState]:
    """Return states in different modes, each with as many fields in use as it can have."""
    names = (
        "idle",
        "between",
        "model-waits",
        "calls",
        "asking",
        "ending",
        "resolving",
        "doubting",
        "answered",
        "completed",
        "failed",
        "fallback",
        "approving",
        "approved",
        "second",
    )
    tasks = {name: Task(stores=False, after_answer="input_required") for name in names}
    tasks["fallback"] = Task(stores=False, fallbacks=(ModelSpec(name="second"), ModelSpec(name="third", timeout_s=5)))
    tasks["completed"] = Task(stores=False)
    tasks["failed"] = Task(stores=False, on_unanswered="fail")
    for task in tasks.values():
        task.send("first")
        task.store()
        task.send("second", lane="queue")
    tasks["idle"].stop()
    tasks["idle"].model_fails("cancelled")
    tasks["between"].reply()
    tasks["model-waits"].model_fails("model_transient", retry_after_ms=5_000)
    for name in ("calls", "asking", "ending", "resolving"):
        tasks[name].store()
        tasks[name].reply(call("get_order"), call("notify"), ask("Refund or replacement?"))
        tasks[name].finish(1, "in_doubt", reason="no check")
    tasks["calls"].tool_fails(0, "worker_died", alone=True, worker="w1")
    tasks["asking"].finish(0)
    tasks["ending"].stop()
    tasks["resolving"].stop()
    tasks["resolving"].tool_fails(0, "cancelled")
    tasks["resolving"].send("third")
    tasks["resolving"].store()
    tasks["answered"].store()
    tasks["answered"].reply(call("label"), call("get_order"))
    tasks["answered"].finish(0, "asks", question="Really?", choices=("yes", "no"))
    tasks["answered"].answer("yes")
    tasks["doubting"].store()
    tasks["doubting"].reply(call("pay", '{"amount":1}'), call("get_order"))
    tasks["doubting"].finish(0, "in_doubt", reason="no check")
    for name in ("approving", "approved"):
        tasks[name].store()
        waits = asking("refund", '{"amount":150}', reason="more than 100", expires_in_s=3_600)
        tasks[name].reply(waits, ask("How many?", form=FORM), ask("Which?", choices=("red", "blue"), expires_in_s=60))
    tasks["approved"].answer('{"approve": true, "arguments": {"amount": 50}}', by="alice")
    tasks["second"].store()
    tasks["second"].reply()
    tasks["completed"].withdraw("second")
    tasks["completed"].reply()
    tasks["failed"].model_fails("model_permanent")
    tasks["fallback"].model_fails("model_permanent", elsewhere=True)
    tasks["fallback"].model_fails("model_transient", retry_after_ms=5_000)
    return {name: task.state for name, task in tasks.items()}


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda p: p.stem)
def test_r15_samples_of_every_version_can_be_read(path: Path) -> None:
    state = TaskState.model_validate_json(path.read_text())
    owed = outstanding(state)
    match path.stem.split("-", 2)[2]:
        case "idle" | "asking" | "between" | "doubting":
            assert not any(isinstance(c, CallModel | CallTool) for c in owed)
        case "completed" | "failed":
            assert owed[-1] == Persist(terminal=True)
        case _:
            assert owed


def test_r15_the_present_version_has_a_sample_of_every_mode() -> None:
    for name, state in made().items():
        kept = TaskState.model_validate_json((SAMPLES / f"state-v{STATE_SCHEMA}-{name}.json").read_text())
        assert kept.mode == state.mode, f"{name}: a sample was changed; write a new version beside it"


def test_r15_unknown_fields_and_versions_are_refused() -> None:
    body = made()["idle"].model_dump(mode="json")
    with pytest.raises(ValidationError, match="schema_version"):
        TaskState.model_validate(body | {"schema_version": STATE_SCHEMA + 1})
    with pytest.raises(ValidationError, match="later_field"):
        TaskState.model_validate(body | {"later_field": 1})


def write() -> None:
    """Write the samples that are missing."""
    SAMPLES.mkdir(exist_ok=True)
    for name, state in made().items():
        path = SAMPLES / f"state-v{STATE_SCHEMA}-{name}.json"
        if not path.exists():
            path.write_text(json.dumps(state.model_dump(mode="json"), indent=1) + "\n")


if __name__ == "__main__":
    write()
