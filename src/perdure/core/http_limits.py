"""Every bound of HTTP tools, each with its reason (P7). All others are in `limits.py`.

Units are in the names.
"""

from perdure.core.limits import CALLS_AT_ONCE_MAX, KIB

DOCUMENT_BYTES_MAX = 16 * KIB * KIB
"""An OpenAPI document; the largest that are published have about 12 MiB."""

DOCUMENT_VALUES_MAX = 2_000_000
"""Values in one document, those counted again that an alias of YAML repeats: a short text can stand for billions."""

DOCUMENT_DEPTH_MAX = 200
"""Containers within each other; real documents have under fifty, Python's own limit is a thousand calls."""

DOCUMENT_FETCH_S = 20.0
"""For a document by URL, read while a source opens; an agent that starts waits for it."""

TOOLS_PER_SOURCE_MAX = 128
"""Operations that are offered of one document. Providers take about so many, and a model chooses worse of more."""

SCHEMA_BYTES_MAX = 64 * KIB
"""One operation's parameters with all that they refer to; it stands in every model call."""

DESCRIPTION_BYTES_MAX = 1 * KIB
"""What a model is told of an operation; documents put whole manuals there."""

ANSWER_BYTES_MAX = 4 * KIB * KIB
"""An answer's body. A model sees its beginning, the store keeps it; a hundred calls at once hold a hundred."""

ADDRESS_CHARS_MAX = 8 * KIB
"""A request's address; what servers and the proxies before them commonly take."""

CONNECT_TIMEOUT_S = 10.0
"""One address of a service; a host that takes longer is down."""

CONNECT_TRIES_MAX = 3
CONNECT_PAUSE_S = 0.5
"""Tries to reach a service for a `once` call while nothing was sent, doubling the pause: a restart takes a second."""

CONNECTIONS_MAX = CALLS_AT_ONCE_MAX
"""Connections of one source: as many as a worker makes calls."""

KEEPALIVE_S = 5.0
"""How long an idle connection is kept: under the time after which servers close theirs."""

REDIRECTS_MAX = 5
"""Redirects of one reading call, within the same origin; more are a loop."""

RETRY_WITHIN_SHARE = 0.9
"""A request ends with this share of its tool's timeout: whoever makes the next attempt must find the last one ended."""
