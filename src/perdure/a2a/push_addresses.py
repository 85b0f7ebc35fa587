"""Where notifications may go: addresses given by clients reach nothing inside (design: outgoing URLs).

Whoever may give this agent work could otherwise make its server call what only the server can reach: a metadata
service, a database's port, a neighbour without a password. So private, loopback, link-local and otherwise special
addresses are refused, unless the operator names their networks (`PERDURE_PUSH_NETWORKS`).

A name says nothing about where it leads, and may lead elsewhere the next moment. So a name is looked up once, all that
it leads to is checked, and the connection goes to what was checked (`push_posting.py`); TLS still asks for the name. Of
a configuration only what is written in the address itself is checked when it is given: looking names up for whoever
asks would tell them what names there are inside.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from urllib.parse import SplitResult, urlsplit

from perdure.core import push_limits
from perdure.core.errors import InvalidInput, Unavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
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
    literal = _literal(host)
    if literal is not None:
        refuse_inside(field, [literal], allowed)
    elif not allowed and f".{host.rstrip('.')}".endswith(_INSIDE):
        raise InvalidInput(field, f"{host!r} is a name inside; {_FIX}")
    return parts


def refuse_inside(field: str, addresses: Sequence[Address], allowed: Sequence[Network]) -> None:
    """Raise `InvalidInput` unless all of these addresses are public, or in a network that the operator allows."""
    for address in addresses:
        for reached in _reached(address):
            if not _is_public(reached) and not any(reached in network for network in allowed):
                raise InvalidInput(field, f"leads to {address}, which is not public; {_FIX}")


_FIX = "give an address that is public, or let the operator name its network in PERDURE_PUSH_NETWORKS"


async def looked_up(host: str, port: int) -> list[Address]:
    """Return all that a name leads to, in the system's order; raises `Unavailable` where it leads nowhere."""
    literal = _literal(host)
    if literal is not None:
        return [literal]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the name {host!r} leads nowhere: {error}") from error
    return list(dict.fromkeys(ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found))


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _reached(address: Address) -> Iterator[Address]:
    """Yield the address, and the one that a gateway would go on to."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        yield from (each for each in inner if each is not None)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return True  # decided by the address within
    return address.is_global and not (address.is_multicast or address.is_reserved)
