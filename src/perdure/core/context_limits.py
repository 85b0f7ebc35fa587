"""The bounds of what a task sees of its context, each with its reason (P7). Units are in the names."""

from perdure.core.limits import KIB

TASKS_MAX = 8
BYTES_MAX = 32 * KIB
TEXT_BYTES_MAX = 8 * KIB
"""Ended tasks of its context that a task sees, the latest; what is said of all of them, and in one piece of them: the
model reads it in every turn."""

EVENTS_PER_READ = 200
EVENTS_MAX = 2_000
"""Events of one ended task that are looked through for what was said in it, from its end: some two hundred turns."""

TASKS_KEPT_MAX = 200
"""Tasks of which a worker remembers what they see of their context; BYTES_MAX each at most, and mostly none."""
