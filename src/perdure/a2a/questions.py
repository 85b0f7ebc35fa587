"""What a task asks, as clients see it: the open help requests, kept from the event log alone. Pure."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from perdure.a2a.exact import shown
from perdure.core.log import LogEvent

Shown = Mapping[int, tuple[str, bool]]
"""Arguments of the calls of a reply, as JSON, by the call's index, and whether they are cut."""

Asked = dict[str, dict[str, JsonValue]]
"""Open requests by their id, the oldest first."""

_NAMES = {"choices": "choices", "schema": "schema", "expires_at_ms": "expiresAtMs", "tool": "tool"}
_APPROVAL = {"call_digest": "callDigest"}


def asked_after(asked: Asked, event: LogEvent, calls: Shown) -> Asked:
    """Return what is open after an event. `calls` are those of the latest reply."""
    help_id = str(event.data.get("help_id", ""))
    if event.kind == "help.requested":
        return {**asked, help_id: _question(help_id, event, calls)}
    if event.kind in {"help.answered", "help.closed"}:
        return {name: each for name, each in asked.items() if name != help_id}
    return asked


def calls_in(event: LogEvent) -> Shown:
    """Return the arguments of a reply's calls, as far as its event repeats them."""
    told = event.data.get("calls")
    found: dict[int, tuple[str, bool]] = {}
    for each in told if isinstance(told, list) else []:
        if isinstance(each, dict) and isinstance(each.get("arguments"), str):
            cut = each.get("arguments_cut") is True
            found[int(str(each.get("index", 0)))] = str(each["arguments"]), cut
    return found


def _question(help_id: str, event: LogEvent, calls: Shown) -> dict[str, JsonValue]:
    data = event.data
    approves = data.get("help_kind") == "approval"
    found: dict[str, JsonValue] = {"helpId": help_id, "kind": "approval" if approves else "question"}
    found["text"] = data.get("text")
    names = _NAMES | (_APPROVAL if approves else {})
    found |= {name: data[field] for field, name in names.items() if field in data}
    if approves:
        arguments, cut = calls.get(int(str(data.get("index", 0))), (None, False))
        found["arguments"] = shown(json.loads(arguments)) if arguments is not None else None
        found |= {"argumentsJson": arguments} if arguments is not None else {}
        found |= {"argumentsCut": True} if cut else {}
    return found
