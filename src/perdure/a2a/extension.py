"""Our extension of A2A: one URI, under which stands what the protocol has no field for yet.

In what the server sends, the metadata of a task and of each update hold, under the URI:

- `generation`: the number of the event after which it is as it says. It counts a task's events 1, 2, 3… without a gap
  (P6), each event is one update, and it is the SSE `id` too. The name and the meaning are those of the field that A2A's
  next version has in these places, and so is its form, digits in a string; when it is released it replaces this one.
- `kind`, `run`, `turn`, and of the rest of the event what a client needs to follow it. Never arguments or results of
  tools: an agent is opaque to those who give it work.

The message of a status that waits for a person holds `questions` there, all that are open, the oldest first: each with
its `helpId`, its `kind` (`question` or `approval`), its `text`, the `choices` or the JSON `schema` of its answer, and
`expiresAtMs`. An approval names the `tool`, the `arguments` and the `callDigest` of the call that waits: who is to
approve it sees it. It is answered by a text (`approve`, `decline: why`), or by a data part `{"approve": true}` with
`reason`, `arguments` to run in place of the model's, and `digest`, by which nothing but that call is approved.

A chunk of a reply that is still being written has the kind `draft`, its `turn` and its `attempt`, and no number: it is
no event, and nothing of it comes again (`drafting.py`).

In a message's metadata a client may put, under the URI:

- `idempotencyKey`: of a first message, what the header `Idempotency-Key` says too (a gRPC client has no headers);
- `lane`: `steer` or `queue`, of a follow-up;
- `helpId`: which open question the message answers, when there are several.
"""

from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pydantic import JsonValue

URI: Final = "urn:perdure:a2a:events:v1"
DESCRIPTION: Final = "Events are numbered without a gap, as SSE id too; Last-Event-ID goes on after any of them."

TOLD: Final = frozenset(
    {
        "attempt",
        "by",
        "call_digest",
        "choices",
        "end",
        "expires_at_ms",
        "help_id",
        "help_kind",
        "index",
        "lane",
        "message_id",
        "open_calls",
        "reason",
        "schema",
        "status",
        "tool",
        "unprocessed",
        "verdict",
    }
)
"""Fields of an event's data that a client is told. A tool's name is; what it is called with and answers is not."""


def told(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what a client may know of an event's data."""
    return {name: value for name, value in data.items() if name in TOLD and value not in ("", None, [])}


def put(metadata: Struct, fields: dict[str, JsonValue]) -> None:
    """Set our fields in the metadata of something that is sent."""
    metadata.update({URI: fields})


def asked(metadata: Struct) -> dict[str, JsonValue]:
    """Return our fields in the metadata of something that came; empty where there are none."""
    found = MessageToDict(metadata).get(URI)
    return found if isinstance(found, dict) else {}
