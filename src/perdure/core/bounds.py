"""The limits that a task decides by, as they were when it began: recorded in its start, with its agent (P11).

A workflow that is replayed elsewhere, by a later version of this package, must come to the same decisions. So the
machine and the workflow read these and never `limits.py`, where today's values and their reasons stand; a task that
begins takes those over for the whole of its life.

What refuses without a trace (an update's validator) is not among them, since nothing of it is ever replayed. Nor are
the lengths that problems and reasons are cut to, which are part of their wording.
"""

from typing import Any, Final

from pydantic import SerializerFunctionWrapHandler, model_serializer

from perdure.core import asking_limits, limits, mcp_limits
from perdure.core.content import Frozen


class Bounds(Frozen):
    """The limits of one task, each under the name that it has in `limits.py`, `asking_limits.py` or `mcp_limits.py`.

    A default is what every task has whose start says nothing of that limit, so it never changes, whatever becomes of
    the limit; a field that is new has as its default the value by which tasks decided before it was one.
    """

    inbox_pending_max: int = 256
    message_ids_remembered: int = 256
    snapshot_ids_max: int = 256
    message_parts_max: int = 64
    message_id_chars_max: int = 128
    calls_per_turn_max: int = 32
    keys_per_call_max: int = 20
    closed_keys_watched_max: int = 20
    doubts_max: int = 100
    questions_per_call_max: int = 10

    answer_bytes_max: int = 32_768
    question_bytes_max: int = 8_192
    shown_call_bytes_max: int = 1_024
    shown_bytes_max: int = 8_192
    edited_bytes_max: int = 16_384

    backoff_first_ms: int = 500
    backoff_factor: float = 2.0
    backoff_max_ms: int = 60_000
    death_backoff_max_ms: int = 200
    retry_after_max_ms: int = 900_000
    shared_deaths_before_quarantine: int = 2

    acknowledge_within_s: float = 10.0
    store_write_timeout_s: float = 10.0
    store_write_heartbeat_timeout_s: float = 3.0
    store_asked_again_s: float = 2.0
    events_per_write_max: int = 200
    messages_per_write_bytes_max: int = 393_216
    history_bytes_max: int = 20_971_520
    history_events_taken_max: int = 4_000

    @model_serializer(mode="wrap")
    def _what_differs(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        body: dict[str, Any] = handler(self)
        return {name: value for name, value in body.items() if value != type(self).model_fields[name].default}


FIRST: Final = Bounds()
"""What a task has whose start names no limit."""


def bounds_now() -> Bounds:
    """Return today's limits, which a task that begins now keeps."""
    values = {**vars(limits), **vars(asking_limits), **vars(mcp_limits)}
    return Bounds.model_validate({name: values[name.upper()] for name in Bounds.model_fields})
