"""The limits that a task decides by are its own: recorded when it begins, and only where they differ from the first."""

import pytest

from perdure.core import asking_limits, limits, mcp_limits
from perdure.core.agent import AgentSpec, ModelSpec
from perdure.core.bounds import FIRST, Bounds, bounds_now

NEVER_CHANGED = {
    "inbox_pending_max": 256,
    "message_ids_remembered": 256,
    "snapshot_ids_max": 256,
    "message_parts_max": 64,
    "message_id_chars_max": 128,
    "calls_per_turn_max": 32,
    "keys_per_call_max": 20,
    "closed_keys_watched_max": 20,
    "doubts_max": 100,
    "questions_per_call_max": 10,
    "answer_bytes_max": 32 * 1024,
    "question_bytes_max": 8 * 1024,
    "shown_call_bytes_max": 1024,
    "shown_bytes_max": 8 * 1024,
    "edited_bytes_max": 16 * 1024,
    "backoff_first_ms": 500,
    "backoff_factor": 2.0,
    "backoff_max_ms": 60_000,
    "death_backoff_max_ms": 200,
    "retry_after_max_ms": 15 * 60_000,
    "shared_deaths_before_quarantine": 2,
    "acknowledge_within_s": 10.0,
    "store_write_timeout_s": 10.0,
    "store_write_heartbeat_timeout_s": 3.0,
    "store_asked_again_s": 2.0,
    "events_per_write_max": 200,
    "messages_per_write_bytes_max": 384 * 1024,
    "history_bytes_max": 20 * 1024 * 1024,
    "history_events_taken_max": 4_000,
}
"""Tasks run by these whose start says nothing of them: a line may be added here, and none changed."""


def spec(bounds: Bounds = FIRST) -> AgentSpec:
    return AgentSpec(agent_id="a", model=ModelSpec(name="m"), bounds=bounds)


def test_p11_the_first_bounds_never_change() -> None:
    assert dict(FIRST) == NEVER_CHANGED


def test_each_bound_is_a_limit_with_its_reason() -> None:
    named = [vars(each) for each in (limits, asking_limits, mcp_limits)]
    for name in Bounds.model_fields:
        assert sum(name.upper() in names for names in named) == 1, name


def test_what_differs_from_the_first_is_recorded_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLS_PER_TURN_MAX", 7)
    monkeypatch.setattr(asking_limits, "EDITED_BYTES_MAX", 99)
    today = spec(bounds_now())
    recorded = today.model_dump(mode="json")
    assert recorded["bounds"] == {"snapshot_ids_max": 0, "calls_per_turn_max": 7, "edited_bytes_max": 99}
    monkeypatch.undo()
    assert AgentSpec.model_validate(recorded) == today
    assert "bounds" not in spec().model_dump(mode="json")
    assert AgentSpec.model_validate(spec().model_dump(mode="json")).bounds == FIRST
