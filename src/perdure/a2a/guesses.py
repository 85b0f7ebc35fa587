"""Guesses: credentials that were none, counted by the address that they came from.

A key cannot be guessed (256 random bits), but each try costs a read of the store or the check of a signature, and
nobody is known whom it could be counted against. So an address from which too many came is refused before anything is
looked at, until its bucket has filled again. What was on its way meanwhile is owed, so that many tries at once are not
cheaper than one after the other.

Behind one address (a proxy, a company) there may be many. A credential that was good lately is looked at all the same;
it is known here by its digest, and whether it is still good is asked as ever. Refused: to count every request of an
address, which would let one neighbour shut the others out.
"""

import hashlib
import ipaddress
from collections import OrderedDict

from perdure.a2a.rates import Rate
from perdure.core import door_limits


class Guesses:
    """What one server remembers of tries to come in, within bounds. Times are arguments."""

    def __init__(self) -> None:
        self._failed = Rate(
            door_limits.AUTH_FAILURES_PER_S, door_limits.AUTH_FAILURES_BURST, door_limits.PEERS_REMEMBERED_MAX
        )
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def wait_s(self, secret: str, peer: str, now_s: float) -> float:
        """Return for how long a credential from there is not looked at; 0 where it is."""
        return 0.0 if _digest(secret) in self._good else self._failed.wait_s(place_of(peer), now_s)

    def failed(self, secret: str, peer: str, now_s: float) -> None:
        """Note that it was none, or is none any more."""
        self._good.pop(_digest(secret), None)
        self._failed.owe(place_of(peer), now_s)

    def succeeded(self, secret: str) -> None:
        """Note that it was good."""
        named = _digest(secret)
        self._good[named] = None
        self._good.move_to_end(named)
        if len(self._good) > door_limits.CREDENTIALS_REMEMBERED_MAX:
            self._good.popitem(last=False)


def place_of(peer: str) -> str:
    """Return what of an address is counted: the address, of IPv6 its network; what is none, as it is."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, door_limits.IPV6_PEER_BITS), strict=False))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
