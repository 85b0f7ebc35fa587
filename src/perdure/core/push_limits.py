"""Every bound of push notifications, each with its reason (P7). All others are in `limits.py`.

Units are in the names.
"""

from perdure.core.limits import KIB

CONFIGS_PER_TASK_MAX = 16
"""Receivers of one task's events; each gets every event, so that a client could multiply its traffic by this."""

ID_CHARS_MAX = 128
"""A configuration's id is part of a primary key."""

URL_CHARS_MAX = 2 * KIB
"""What receivers and the proxies before them commonly take."""

SECRET_CHARS_MAX = 8 * KIB
"""A token or credentials; they travel in a header, and servers refuse headers beyond this."""

AT_ONCE_MAX = 32
"""Notifications on their way at once. What fails already gets half of these places, so that the rest goes on."""

AT_ONCE_PER_PRINCIPAL_MAX = 8
"""Of these so many for the tasks of one principal: three whose receivers are all slow leave a quarter to others."""

AT_ONCE_OF_NOBODY_MAX = 24
"""The same for tasks that are nobody's. Where nobody is asked who they are these are all that there is."""

SLICE_S = 1.0
"""How long one receiver keeps its place while it takes one notification after another; then others have their turn."""

TIMEOUT_S = 15.0
"""One notification, from looking up the name to the end of the answer: within the 10 to 30 s that A2A recommends."""

CONNECT_TIMEOUT_S = 5.0
"""One address of a receiver; it may have several, and the next one needs time too."""

ANSWER_BYTES_MAX = 16 * KIB
"""Of an answer so much is read, to use the connection again; one that says more is cut off."""

BACKOFF_FIRST_MS = 1_000
BACKOFF_MAX_MS = 600_000
ATTEMPTS_MAX = 200
"""Failures in a row of one notification after which its configuration is given up: with this backoff about a day."""

POLL_S = 0.1
"""How soon events that other processes wrote are seen to be delivered; as often as streams ask."""

IDLE_S = 2.0
"""The same while there is no configuration that waits for anything; a new one in this process is seen at once."""

BEAT_S = 2.0
LEASE_S = 6.0
"""A deliverer that shows no sign of life for so long has lost its turn: two beats may be late. What a kill costs."""

VIEWS_KEPT_MAX = 64
"""Tasks kept in memory as of a cursor, so that each event costs a read of that event and not of the whole log."""

KEEP_WITHIN_S = 10.0
KEEP_PAUSE_S = 0.5
"""How long a configuration is offered to a store that does not take it, once its message is accepted: a restart of a
database takes about five seconds. The message's sender waits for its answer meanwhile."""
