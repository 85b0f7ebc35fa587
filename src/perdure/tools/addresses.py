"""Which addresses are inside: what only this machine and its neighbours can reach (design: outgoing URLs).

An address that somebody else named could make this process call a metadata service, a database's port or a neighbour
without a password. So private, loopback, link-local and otherwise special addresses are refused, unless the operator
names their networks. What is refused, and with which advice, is for the caller to say: push notifications go where
clients say, HTTP tools where a document says.

A name says nothing about where it leads, and may lead elsewhere the next moment. So a name is looked up once, all that
it leads to is checked, and the connection goes to what was checked (`outside.py`).
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterator, Sequence

from perdure.core.errors import InvalidInput, Unavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def refuse_inside(field: str, addresses: Sequence[Address], allowed: Sequence[Network], fix: str) -> None:
    """Raise `InvalidInput`, advising `fix`, unless all of these addresses are public or in an allowed network."""
    for address in addresses:
        for reached in _reached(address):
            if not _is_public(reached) and not any(reached in network for network in allowed):
                raise InvalidInput(field, f"leads to {address}, which is not public; {fix}")


async def looked_up(host: str, port: int) -> list[Address]:
    """Return all that a name leads to, in the system's order; raises `Unavailable` where it leads nowhere."""
    literal = literal_of(host)
    if literal is not None:
        return [literal]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the name {host!r} leads nowhere: {error}") from error
    return list(dict.fromkeys(ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found))


def literal_of(host: str) -> Address | None:
    """Return the address that a host is written as, or None for a name."""
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
