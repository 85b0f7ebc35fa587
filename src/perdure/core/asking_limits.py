"""Every bound of questions to people and of approvals, each with its reason (P7). All others are in `limits.py`.

Units are in the names.
"""

from perdure.core.limits import KIB

CHOICES_MAX = 50
"""Answers that a question may offer; a longer list belongs in a text, or in a form's enum."""

CHOICE_CHARS_MAX = 200
"""One of them: a line that a person can read in a menu."""

FORM_BYTES_MAX = 4 * KIB
"""A form's schema; it is held in the state until it is answered, and stands in the event that asks."""

FORM_DEPTH_MAX = 4
"""Objects and arrays within each other: more is no form that a person fills in."""

EXPIRES_S_MIN = 1.0
EXPIRES_S_MAX = 366 * 24 * 3600.0
"""How long a question may wait when an expiry is asked for; without one it waits for ever."""

CONDITION_CHARS_MAX = 500
CONDITION_NODES_MAX = 100
"""One condition of a rule: what a person can still check by reading it. It is evaluated for every call."""

RULES_MAX = 200
"""Rules of one agent; they are gone through for every call."""

REASON_BYTES_MAX = 1 * KIB
"""Why a rule denies or asks, and why a person declined: it stands in the state and in events."""

SHOWN_BYTES_MAX = 8 * KIB
"""A call as a person is asked to approve it; a longer one is cut with a notice, its digest covers the whole."""

EDITED_BYTES_MAX = 16 * KIB
"""Arguments that a person had run in place of the model's: they stand in the state and in every attempt of the call."""
