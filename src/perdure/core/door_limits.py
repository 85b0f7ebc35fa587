"""Bounds of what the front door is asked and what it answers, each with its reason (P7). All others are in `limits.py`.

What an operator may set is there too. Units are in the names.
"""

from perdure.core.limits import KIB

# --- who asks -----------------------------------------------------------------------------------------------------
AUTH_FAILURES_PER_S = 5.0
AUTH_FAILURES_BURST = 100.0
"""Credentials from one address that are looked at and are none, on average and at once: each costs a read of the store
or the check of a signature. A client whose key was revoked comes with all its streams; a hundred of them is busy."""

PEERS_REMEMBERED_MAX = 10_000
"""Addresses whose failures are remembered; of more, the one that has been quiet longest begins anew."""

CREDENTIALS_REMEMBERED_MAX = 10_000
"""Credentials, by digest, that were good lately, so that nobody is locked out by others behind the same address."""

IPV6_PEER_BITS = 64
"""Of an IPv6 address so much says who it is: whoever has one such network has all addresses in it."""

# --- gRPC ---------------------------------------------------------------------------------------------------------
CALLS_REFUSED_AT_ONCE_MAX = 100
"""Calls beyond REQUESTS_MAX that are told why and when to come back; gRPC itself drops what comes on top of these."""

RPC_PING_S = 60.0
RPC_PING_WITHIN_S = 20.0
"""How often a silent gRPC connection is asked whether it still reads, and how long it may take to say so."""

VARINT_BYTES_MAX = 10
"""A number in protobuf has at most 64 bits, seven to a byte."""

# --- answers ------------------------------------------------------------------------------------------------------
TASK_BYTES_MAX = 8 * KIB * KIB
"""One task as it is told, by protobuf's measure; JSON takes a third more for files. Whatever is larger is left out, the
oldest first: an answer stands in memory whole, once for each client that is slow to take it."""

PAGE_BYTES_MAX = 8 * KIB * KIB
"""The tasks of one page of a list; it ends early, and the next page goes on."""

PAGE_TASKS_AT_ONCE_MAX = 8
"""Tasks of a page that are read at once; each may take TASK_BYTES_MAX of memory before it is known whether it fits."""

ANSWER_PIECE_BYTES = 64 * KIB
"""An answer is handed to the connection in pieces of this size, as much as the server's own buffer takes: so a client
that does not read is waited for with the rest, and does not get it all put into that buffer."""

ANSWER_S = 120.0
"""How long a client may take for the whole of an answer; TASK_BYTES_MAX in it is 0.6 Mbit/s."""

CONNECTION_STALL_S = 60.0
"""What is left in a connection that was cut is dropped after so long unread, by the kernel: longer than STREAM_STALL_S,
after which it is cut. Until then it holds a file of the process, and two pieces."""

# --- sharing ------------------------------------------------------------------------------------------------------
SHARED_WITH_MAX = 16
"""Principals that a task is shared with; each is a row of the store, and all travel with the task's start."""
