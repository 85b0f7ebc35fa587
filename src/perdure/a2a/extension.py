"""Our extension of A2A: one URI, under which stands what the protocol has no field for yet.

In what the server sends, the metadata of a task and of each update hold, under the URI:

- `generation`: the number of the event after which it is as it says. It counts a task's events 1, 2, 3… without a gap
  (P6), each event is one update, and it is the SSE `id` too. The name and the meaning are those of the field that A2A's
  next version has in these places, and so is its form, digits in a string; when it is released it replaces this one.
- `reason`, of a task: why it is in its state, by the reason code of its latest `task.status`, which may be empty;
- `kind`, `run`, `turn`, and of the rest of the event what a client needs to follow it. Never arguments or results of
  tools: an agent is opaque to those who give it work.

The message of a status that waits for a person holds `questions` there, all that are open, the oldest first: each with
its `helpId`, its `kind` (`question` or `approval`), its `text`, the `choices` or the JSON `schema` of its answer, and
`expiresAtMs`. An approval names the `tool`, the `arguments` (with their values cut, and `argumentsCut` true, where they
are too large to be shown) and the `callDigest` of the call that waits: who is to approve it sees it. Numbers of a
Struct are of double precision: a whole number beyond 2^53 - 1 is a string of its digits in `arguments`, and
`argumentsJson` has the same arguments as JSON text, with every number as it will be run.

It is answered by a text (`approve`, `decline: why`), or by an object `{"approve": true}` with `reason`, `arguments` to
run in place of the model's, all of them, and `digest`, by which nothing but that call is approved. The object comes as
a data part, or as a text part that is JSON: in `arguments` of a data part whole numbers beyond 2^53 - 1 are refused,
since they may have been others before they were sent. A text or an object that names a call, and which no call that
waits answers to, is refused: the first word counts, and a late one is no message to the agent.

A chunk of a reply that is still being written has the kind `draft`, its `turn` and its `attempt`, and no number: it is
no event, and nothing of it comes again (`drafting.py`).

- `messagesLeftOut`, `artifactsLeftOut`: on a task that is too large to be told whole, how many of the oldest are not in
  it (`fitting.py`).
- `pushNotKept`: on the answer to a message that was taken in: why the push configuration that came with it was not.

In a message's metadata a client may put, under the URI:

- `idempotencyKey`: of a first message, what the header `Idempotency-Key` says too (a gRPC client has no headers);
- `lane`: `steer` or `queue`, of a follow-up;
- `helpId`: which open question the message answers, when there are several;
- `sharedWith`: of a first message, the principals that may see its task too (`sharing.py`).

The extension has operations of its own (`lanes.py` says what each does), which the card names in its parameters:

| | JSON-RPC method | HTTP+JSON |
| --- | --- | --- |
| stop the run | `perdure.StopTask` | `POST /tasks/{id}:stop` |
| push a message ahead | `perdure.SteerMessage` | `POST /tasks/{id}/messages/{messageId}:steer` |
| take a message back | `perdure.WithdrawMessage` | `POST /tasks/{id}/messages/{messageId}:withdraw` |
| see what waits | `perdure.GetInbox` | `GET /tasks/{id}/inbox` |

On gRPC they are the service `perdure.a2a.v1.Lanes` (`StopTask` and so on). The prefix keeps clear of names that a later
A2A may take. `lane` of a message says where it goes when it is sent: `steer` is the default while a run is open.
"""

from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pydantic import JsonValue

URI: Final = "urn:perdure:a2a:events:v1"
DESCRIPTION: Final = "Events are numbered without a gap, as SSE id too; Last-Event-ID goes on after any of them."

PREFIX: Final = "perdure."
STOP: Final = f"{PREFIX}StopTask"
STEER: Final = f"{PREFIX}SteerMessage"
WITHDRAW: Final = f"{PREFIX}WithdrawMessage"
INBOX: Final = f"{PREFIX}GetInbox"

SERVICE: Final = "perdure.a2a.v1.Lanes"
"""On gRPC; the methods are the names without their prefix."""

PATHS: Final = {
    STOP: ("POST", "/tasks/{id}:stop"),
    STEER: ("POST", "/tasks/{id}/messages/{messageId}:steer"),
    WITHDRAW: ("POST", "/tasks/{id}/messages/{messageId}:withdraw"),
    INBOX: ("GET", "/tasks/{id}/inbox"),
}
"""Each operation's verb and path on HTTP+JSON."""

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
        "unprocessed_before",
        "verdict",
    }
)
"""Fields of an event's data that a client is told. A tool's name is; what it is called with and answers is not."""


def parameters() -> Struct:
    """Return what the card says of the extension beside its URI: the names of its operations, and where they are."""
    operations: list[JsonValue] = [
        {"method": name, "http": f"{verb} {path}", "rpc": f"{SERVICE}/{name.removeprefix(PREFIX)}"}
        for name, (verb, path) in PATHS.items()
    ]
    found = Struct()
    found.update({"operations": operations})
    return found


def told(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what a client may know of an event's data."""
    return {name: value for name, value in data.items() if name in TOLD and value not in ("", None, [])}


def put(metadata: Struct, fields: dict[str, JsonValue]) -> None:
    """Set our fields in the metadata of something that is sent."""
    metadata.update({URI: fields})


def add(metadata: Struct, fields: dict[str, JsonValue]) -> None:
    """Set these fields of ours beside those that are there."""
    put(metadata, {**asked(metadata), **fields})


def asked(metadata: Struct) -> dict[str, JsonValue]:
    """Return our fields in the metadata of something that came; empty where there are none."""
    found = MessageToDict(metadata).get(URI)
    return found if isinstance(found, dict) else {}
