"""Bounds of MCP servers and of what their calls may ask for, each with its reason (P7).

They are apart from `limits.py` because nothing else uses them.
"""

KIB = 1024
"""Bytes; for the bounds below."""

MCP_CONNECT_S = 30.0
"""Start, handshake and listing: servers in Node or Python start within seconds, from a package runner's cache later."""

MCP_RESTART_DELAY_FIRST_S = 0.2
MCP_RESTART_DELAY_MAX_S = 10.0
"""Between starts of a server that does not live: the first is at once, then 0.2 s, 0.4 s and so on up to this."""

MCP_STEADY_S = 5.0
"""A server that lived this long came up: what ended it was not its own start, and the next start is at once."""

MCP_END_S = 1.5
"""What a server may take to end by itself once its input is closed, before it is killed: the SDK waits 2 s."""

MCP_CLOSE_S = 10.0
"""What closing a connection may take before it is cut off: the SDK's own waits are 6.5 s together."""

MCP_CUT_OFF_S = 60.0
"""How long a server may still speak of a request that was cut off. Its words are in no task's log then: they may be
about another's work."""

MCP_END_HEARD_S = 1.0
"""A connection of which a request learned that it is closed hears of its end within milliseconds, if it ended."""

MCP_PAGES_MAX = 100
"""Pages of one listing: a server that never ends its list must not hold up a start."""

MCP_TOOLS_OFFERED_MAX = 100
"""Tools of one server that an agent offers. Each stands in every task's start and before the model in every turn; of a
larger catalogue the patterns choose."""

MCP_SCHEMA_BYTES_MAX = 32 * KIB
"""One tool's schema: the model reads it in every turn, and no tool that people write comes near."""

MCP_DESCRIPTION_BYTES_MAX = 8 * KIB
"""A server's own words on one tool; more is cut."""

MCP_LISTED_MAX = 20
"""Resources or prompts that a description names as examples; a listing that is asked for has them all."""

MCP_FILES_MAX = 16
"""Files of one result that are kept: a page of images, not a folder."""

QUESTIONS_PER_CALL_MAX = 10
"""Questions that one call may put to a person, one after the other. More is a form that belongs in the arguments."""

NOTES_PER_ATTEMPT_MAX = 20
NOTE_BYTES_MAX = 300
"""What a tool says of its work while it works: the latest stand in one row of the log, after the attempt."""
