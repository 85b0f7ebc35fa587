"""A check that is a tool itself: how it is asked, and what its answer means.

It gets the key, and says `{"happened": true, "result": …}`, `{"happened": false}` (not so far) or `{"happened": false,
"final": true}` (never: a late request under this key will be refused). Nothing else is taken for an answer. A search
that found nothing looks much like one that found something, and a guess would be paid twice (P4).
"""

from collections.abc import Mapping

from pydantic import JsonValue

from perdure.core.ports import Check

ANSWERS = '{"happened": true, "result": …}, {"happened": false} or {"happened": false, "final": true}'
"""What a check may say, for whoever is told that one said something else."""

_KEYS = ("idempotencykey", "key", "requestkey", "effectkey")


def check_of(answer: JsonValue) -> Check | None:
    """Return what a check's answer means, None where it says something else."""
    if not isinstance(answer, dict) or not isinstance(answer.get("happened"), bool):
        return None
    if answer["happened"]:
        return Check.happened(answer.get("result"))
    return Check.never() if answer.get("final") is True else Check.not_yet()


def key_argument(schema: Mapping[str, JsonValue]) -> str | None:
    """Return which argument of a check takes the key: by its name, else the only one; None where that is not clear."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return None
    for key in _KEYS:
        for name in properties:
            if name.replace("_", "").replace("-", "").lower() == key:
                return name
    names = [str(name) for name in required] if isinstance(required, list) and required else list(properties)
    return names[0] if len(names) == 1 else None
