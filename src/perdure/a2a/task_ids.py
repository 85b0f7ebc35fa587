"""Ids of new tasks.

A first message has no task yet, so a client that got no answer cannot tell whether its task exists. One that sends an
idempotency key can send the same again: the id of its task follows from who it is and from the key, so that the second
try meets the task of the first. Without a key every message is a new task, the message's id notwithstanding: clients
reuse those.

The id of a context is never derived: clients may name contexts, and one that can be computed could be taken beforehand
by somebody else.
"""

import secrets

from perdure.core.digests import digest

ID_DIGITS = 32
"""128 bits of a digest: two keys do not meet by accident, and the id is still short enough to type."""


def derived_task_id(principal: str, agent_id: str, key: str) -> str:
    """Return the id of the task that this key stands for, the same each time."""
    return f"t-{digest({'principal': principal, 'agent': agent_id, 'key': key})[:ID_DIGITS]}"


def fresh_task_id() -> str:
    """Return an id that no task has."""
    return f"t-{secrets.token_hex(ID_DIGITS // 2)}"


def fresh_context_id() -> str:
    """Return an id that no context has."""
    return f"c-{secrets.token_hex(ID_DIGITS // 2)}"
