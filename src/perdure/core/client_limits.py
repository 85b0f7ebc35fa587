"""Every bound of the command line as a client of any A2A server, each with its reason (P7).

Units are in the names.
"""

CONNECT_S = 10.0
"""To be connected, to write, to get a connection: a host that takes longer is down."""

CARD_S = 10.0
"""For an agent's card, which every server answers at once."""

SILENCE_S = 45.0
"""A stream on which nothing came for so long is dead: servers of this package send a ping every 15 s."""

ANSWER_S = 600.0
"""For an answer of a server that need not ping: what its agent does in between may take minutes."""

BACKOFF_FIRST_S = 0.2
BACKOFF_MAX_S = 5.0
"""Between tries to reach a server again: soon enough to be back when it is, seldom enough not to hinder its start."""

PATIENCE_S = 300.0
"""How long a server may be away before a client ends and says from which number to go on."""

LIST_PATIENCE_S = 20.0
"""The same for who only wants to see a list."""

POLL_FIRST_S = 0.5
POLL_MAX_S = 5.0
"""How often a server that does not stream is asked."""

EARLY_MAX = 1_000
"""Events kept because they came before their predecessors; more is no reordering but a gap, and is asked for again."""
