"""Ids of new tasks.

A first message has no task yet, so a client that got no answer cannot tell whether its task exists. One that sends an
idempotency key can send the same again: the id of its task, and of the context where it named none, follow from who it
is and from the key, so that the second try meets the task of the first. Without a key every message is a new task, the
message's id notwithstanding: clients reuse those.
"""

import secrets

from perdure.core.digests import digest

ID_DIGITS = 32
"""128 bits of a digest: two keys do not meet by accident, and the id is still short enough to type."""


def derived_ids(principal: str, agent_id: str, key: str) -> tuple[str, str]:
    """Return the ids of the task and of the context that this key stands for, the same ones each time."""
    name = digest({"principal": principal, "agent": agent_id, "key": key})[:ID_DIGITS]
    return f"t-{name}", f"c-{name}"


def fresh_ids() -> tuple[str, str]:
    """Return ids that nothing has."""
    name = secrets.token_hex(ID_DIGITS // 2)
    return f"t-{name}", f"c-{name}"
