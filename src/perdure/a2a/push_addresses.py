"""Where notifications may go: addresses given by clients reach nothing inside (design: outgoing URLs).

Whoever may give this agent work could otherwise make its server call what only the server can reach: a metadata
service, a database's port, a neighbour without a password. So private, loopback, link-local and otherwise special
addresses are refused, unless the operator names their networks (`PERDURE_PUSH_NETWORKS`).

A name says nothing about where it leads, and may lead elsewhere the next moment. So a name is looked up once, all that
it leads to is checked, and the connection goes to what was checked (`push_posting.py`); TLS still asks for the name. Of
a configuration only what is written in the address itself is checked when it is given: looking names up for whoever
asks would tell them what names there are inside.
"""

from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from perdure.core import push_limits
from perdure.core.errors import InvalidInput
from perdure.tools.addresses import Address, Network, literal_of, looked_up
from perdure.tools.addresses import refuse_inside as refuse

__all__ = ["Address", "Network", "checked_url", "looked_up", "refuse_inside"]

_PRINTABLE = range(0x21, 0x7F)
_INSIDE = (".localhost", ".local", ".internal")
"""Endings of names that lead to nobody outside."""


def checked_url(field: str, url: str, allowed: Sequence[Network] = ()) -> SplitResult:
    """Return a webhook's URL in its parts; raises `InvalidInput` for what is none, or goes inside by what it says."""
    if not 0 < len(url) <= push_limits.URL_CHARS_MAX:
        raise InvalidInput(field, f"must have 1 to {push_limits.URL_CHARS_MAX} characters")
    if any(ord(character) not in _PRINTABLE for character in url):
        raise InvalidInput(field, "holds a space, a control or a non-ASCII character; escape it, names as punycode")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(field, f"is no URL ({error}); give https://host/path") from error
    if parts.scheme not in {"https", "http"} or not host or port == 0:
        raise InvalidInput(field, "must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(field, "holds a user or a password; give those as authentication")
    literal = literal_of(host)
    if literal is not None:
        refuse_inside(field, [literal], allowed)
    elif not allowed and f".{host.rstrip('.')}".endswith(_INSIDE):
        raise InvalidInput(field, f"{host!r} is a name inside; {_FIX}")
    return parts


def refuse_inside(field: str, addresses: Sequence[Address], allowed: Sequence[Network]) -> None:
    """Raise `InvalidInput` unless all of these addresses are public, or in a network that the operator allows."""
    refuse(field, addresses, allowed, _FIX)


_FIX = "give an address that is public, or let the operator name its network in PERDURE_PUSH_NETWORKS"
