"""An HTTP service as a source of tools: its OpenAPI document, and what the operator says over it.

Whose word is it where requests go? What the operator wrote is trusted: `base_url`, and a document given as a file or as
a value with the servers that stand in it. A document that was fetched may name any server. Its own origin is what the
operator gave; another server must be public, or in a network that the operator named, and gets none of the operator's
headers: whoever can change a document must not be able to have secrets sent to themselves.
"""

import asyncio
import difflib
import ipaddress
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import anyio

from perdure.core import http_limits
from perdure.core.agent import EffectClass
from perdure.core.errors import ConfigurationError, Unavailable
from perdure.core.ports import ToolPort
from perdure.core.tool_rules import (
    ToolRules,
    ruled_spec,
    rules_for,
    schema_digest,
    settling_s,
)
from perdure.tools.addresses import Network
from perdure.tools.check_answers import key_argument
from perdure.tools.environment import Environment
from perdure.tools.http.answers import told_status
from perdure.tools.http.client import Client, Lost, NotSent, Origin
from perdure.tools.http.document import Document, checked, read_text
from perdure.tools.http.offering import Offer, offer_of
from perdure.tools.http.operations import KEY_HEADER, Method, Operation
from perdure.tools.http.outcomes import is_good, meaning
from perdure.tools.http.requests import OWN_HEADERS, Request
from perdure.tools.http.tool import Asking, HttpTool, Service

_SOURCE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,31}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_FRAMING: Final = frozenset(("content-length", "transfer-encoding", "connection", "host", KEY_HEADER.lower()))
_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_SERVER: Final = re.compile(r"(?:[^/?]*//)?[^/?]*")
"""A URL's scheme and host."""
_FETCHED: Final = ("http://", "https://")
_CLAIMED: Final[Mapping[Method, EffectClass]] = {
    "get": "read",
    "head": "read",
    "options": "read",
    "trace": "read",
    "put": "idempotent",
    "delete": "idempotent",
}
"""What a method claims of its effect, by RFC 9110; every other is `once`."""


class OpenApiTools:
    """The operations of an HTTP service, as tools named `name.operation`.

    GET and HEAD are `read`, PUT and DELETE `idempotent`, all others `once`, unless rules say otherwise. Every call that
    is no read carries its key in the header `Idempotency-Key`.

    Args:
        name: What its tools' names begin with.
        document: An OpenAPI 3.0 or 3.1 document: a value, a file in JSON or YAML, or where to fetch it.
        base_url: Where requests go, in place of the document's servers. A query in it goes with every request.
        headers: Go with every request. `${NAME}` in a value is taken from the environment when the source opens.
        tools: Names or patterns (`orders_*`) of the operations that are offered.
        rules: What is said over an operation's claim, by name or pattern. `check` names another operation: it is asked
            with the key what became of a call.
        networks: Networks that are not public and may be reached all the same, as in `10.1.0.0/16`.

    Raises:
        ConfigurationError: Names the setting and the fix.
    """

    def __init__(
        self,
        name: str,
        document: str | Path | Mapping[str, Any],
        *,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        tools: Sequence[str] = ("*",),
        rules: Mapping[str, ToolRules] | None = None,
        networks: Sequence[str] = (),
    ) -> None:
        self._field = f"http.{name}"
        if _SOURCE.fullmatch(name) is None:
            raise ConfigurationError(
                f"{self._field}, name", "use a letter, then up to 31 letters, digits, - and _; tools are named after it"
            )
        self._name = name
        self._document = document
        self._base_url = base_url
        self._headers = dict(headers or {})
        for header in self._headers:
            if _HEADER.fullmatch(header) is None:
                raise ConfigurationError(
                    f"{self._field}, headers", f"{header!r} is no header's name; write it as in X-Api-Key"
                )
            if header.lower() in _FRAMING:
                raise ConfigurationError(f"{self._field}, headers", f"{header!r} is set for each request; leave it out")
        self._tools = tuple(tools)
        self._rules = dict(rules or {})
        self._networks = tuple(_network(f"{self._field}, networks", each) for each in networks)

    def __repr__(self) -> str:
        return f"<HTTP service {self._name!r}>"

    @property
    def name(self) -> str:
        """What its tools' names begin with."""
        return self._name

    @property
    def document(self) -> str:
        """Where its document is, for people."""
        return "a document in Python" if isinstance(self._document, Mapping) else str(self._document)

    @property
    def rules(self) -> Mapping[str, ToolRules]:
        """What is said over its operations' claims."""
        return self._rules

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[ToolPort, ...]]:
        """Read the document and give its tools; their calls work until the end.

        Raises:
            ConfigurationError: A setting, the document or a rule cannot work; names it and the fix.
            Unavailable: The document cannot be fetched.
        """
        environment = Environment()
        headers = {header: self._filled_header(environment, header) for header in self._headers}
        base_url = self._base_url and self._filled_url(environment, "base_url", self._base_url)
        document = await self._read(environment, headers, base_url)
        # In a thread: a large document takes seconds, and others work in this process.
        operations, offered = await asyncio.to_thread(self._offer, document)
        called = {each.name for each in offered} | {check for each in offered if (check := self._check_of(each))}
        masked = environment.masked
        bases = {
            name: self._base(document, operations[name], base_url, masked) for name in called if name in operations
        }
        given = self._given(document, base_url, bases.values(), masked)
        async with Client(given, self._networks) as client:
            services = {name: self._service(client, base, headers, environment, given) for name, base in bases.items()}
            yield tuple(self._tool(each, operations, services) for each in offered)

    # --- the document -------------------------------------------------------------------------------------------

    async def _read(self, environment: Environment, headers: Mapping[str, str], base_url: str | None) -> Document:
        field = f"{self._field}, document"
        if isinstance(self._document, Mapping):
            return await asyncio.to_thread(checked, field, self._document)
        place = str(self._document)
        if place.startswith(_FETCHED):
            url = self._filled_url(environment, "document", place)
            text = await self._fetched(url, environment, headers, base_url)
            return await asyncio.to_thread(lambda: checked(field, read_text(field, text), url))
        try:
            async with await anyio.open_file(place, encoding="utf-8") as file:
                text = await file.read(http_limits.DOCUMENT_BYTES_MAX + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(field, f"cannot be read: {error}; give a file, a URL or a value") from error
        return await asyncio.to_thread(lambda: checked(field, read_text(field, text)))

    async def _fetched(
        self, url: str, environment: Environment, headers: Mapping[str, str], base_url: str | None
    ) -> str:
        field = f"{self._field}, document"
        origin = _origin(field, url, environment.masked)
        own = headers if base_url is None or _origin(field, base_url, environment.masked) == origin else {}
        request = Request("GET", url, OWN_HEADERS).with_headers(own)
        async with Client([origin], self._networks) as client:
            try:
                answer = await client.send(
                    request, http_limits.DOCUMENT_FETCH_S, "read", bytes_max=http_limits.DOCUMENT_BYTES_MAX
                )
            except (NotSent, Lost) as error:
                raise Unavailable(environment.masked(f"{field}: cannot be fetched: {error}")) from error
        if meaning(answer.status, "read", "GET", 1) == "again":
            raise Unavailable(f"{field}: cannot be fetched: its server answered {told_status(answer.status)}")
        if not is_good(answer.status) or not answer.whole:
            why = told_status(answer.status) if answer.whole else f"more than {http_limits.DOCUMENT_BYTES_MAX} bytes"
            raise ConfigurationError(field, f"its server answered {why}; give the address of an OpenAPI document")
        return answer.body.decode(errors="replace")

    # --- where requests go --------------------------------------------------------------------------------------

    def _base(
        self, document: Document, operation: Operation, base_url: str | None, masked: Callable[[str], str]
    ) -> str:
        if base_url is not None:
            return base_url
        server = operation.server if document.url is None else urljoin(document.url, operation.server)
        if not server.startswith(_FETCHED):
            raise ConfigurationError(
                f"{self._field}, base_url", f"is missing: the document's server is {server!r}; give where requests go"
            )
        _origin(f"{self._field}, document", server, masked)
        return server

    def _given(
        self, document: Document, base_url: str | None, bases: Iterable[str], masked: Callable[[str], str]
    ) -> frozenset[Origin]:
        """Return the origins that the operator gave."""
        field = f"{self._field}, document"
        if base_url is not None or document.url is None:
            return frozenset(_origin(field, each, masked) for each in bases)
        return frozenset((_origin(field, document.url, masked),))

    def _service(
        self,
        client: Client,
        base: str,
        headers: Mapping[str, str],
        environment: Environment,
        given: frozenset[Origin],
    ) -> Service:
        origin = _origin(f"{self._field}, base_url", base, environment.masked)
        if headers and origin not in given:
            raise ConfigurationError(
                f"{self._field}, base_url",
                f"is missing: the document that was fetched sends requests to {origin}, and your headers go only where "
                f"you say; give base_url={environment.masked(base)!r} if that is right",
            )
        return Service(client, base, headers, environment)

    # --- tools --------------------------------------------------------------------------------------------------

    def _tool(
        self, operation: Operation, operations: Mapping[str, Operation], services: Mapping[str, Service]
    ) -> HttpTool:
        rules = rules_for(operation.name, self._rules)
        claimed = _CLAIMED.get(operation.method, "once")
        name = f"{self._name}.{operation.name}"
        spec = ruled_spec(name, claimed, rules, schema_digest(operation.schema, claimed))
        asking = self._asking(name, rules.check, operations, services)
        settle_s = 0.0 if asking is None else settling_s(name, rules.settle_s, spec.timeout_s)
        return HttpTool(spec, operation, services[operation.name], asking, settle_s)

    def _asking(
        self, tool: str, check: str | None, operations: Mapping[str, Operation], services: Mapping[str, Service]
    ) -> Asking | None:
        if check is None:
            return None
        field = f"tool {tool!r}, check"
        operation = operations.get(check)
        if operation is None:
            near = ", ".join(difflib.get_close_matches(check, operations, n=3)) or "none like it"
            raise ConfigurationError(field, f"there is no operation {check!r}; there are {near}")
        claimed = _CLAIMED.get(operation.method, "once")
        if (rules_for(check, self._rules).effect or claimed) == "once":
            raise ConfigurationError(
                field,
                f"{check!r} is a {operation.method.upper()}; a check is asked again, declare it idempotent or read",
            )
        if not operation.takes_key and key_argument(operation.schema) is None:
            raise ConfigurationError(
                field,
                f"{check!r} has no parameter for the key; it needs one named key, or exactly one that is required",
            )
        return Asking(operation, services[check])

    def _offer(self, document: Document) -> Offer:
        given = frozenset(header.lower() for header in self._headers)
        return offer_of(self._field, document, given, self._tools, self._rules)

    def _check_of(self, operation: Operation) -> str | None:
        return rules_for(operation.name, self._rules).check

    def _filled_url(self, environment: Environment, setting: str, url: str) -> str:
        """Fill in a URL; what stands in its path and query is a secret, names of hosts are none."""
        field = f"{self._field}, {setting}"
        server = _SERVER.match(url)
        after = server.end() if server else 0
        filled = environment.filled(field, url[:after], secret=False) + environment.filled(field, url[after:])
        _origin(field, filled, environment.masked)
        return filled

    def _filled_header(self, environment: Environment, header: str) -> str:
        field = f"{self._field}, headers.{header}"
        value = environment.filled(field, self._headers[header])
        if _VALUE.fullmatch(value) is None or value != value.strip():
            raise ConfigurationError(field, "must be visible ASCII characters on one line, without spaces around them")
        return value


def _origin(field: str, url: str, masked: Callable[[str], str]) -> Origin:
    try:
        return Origin.of(url)
    except ValueError as error:
        raise ConfigurationError(field, f"{masked(url)!r} {error}") from error


def _network(field: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(field, f"{error}; name networks as in 10.1.0.0/16") from error
