"""The one door to Temporal: whatever the settings name, the same client comes out.

Converter and interceptors are the same for an embedded and a remote Temporal, so that what was tested against the one
holds for the other. Within a process (and event loop) settings that name one connection share one client, and one
embedded server: address, namespace, TLS and the key's digest name a remote one, the resolved path an embedded one. A
server in memory is never shared.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Interceptor
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode, TLSConfig

from perdure.core.errors import ConfigurationError, EmbeddedTemporalError, Unavailable
from perdure.temporal.embedded import EmbeddedTemporal, find_record, resolved
from perdure.temporal.embedded_lock import DatabaseHeldError
from perdure.temporal.sdk_runtime import sdk_runtime
from perdure.temporal.settings import EmbeddedSettings, MemorySettings, RemoteSettings, TemporalSettings
from perdure.temporal.shared import Shared

_PAYLOADS: Final = PydanticPayloadConverter()


class Payloads(PydanticPayloadConverter):
    """The SDK's pydantic converter, with parts that are made once.

    The SDK makes a new converter several times for every activation and every activity; making the parts anew, with
    their schemas and caches, cost a turn about a millisecond. None of them holds anything but caches.
    """

    def __init__(self) -> None:
        self._set_converters(*_PAYLOADS.converters.values())


DATA_CONVERTER: Final = DataConverter(payload_converter_class=Payloads)
INTERCEPTORS: Final[Sequence[Interceptor]] = ()

JOIN_POLL_S = 0.02


@dataclass(frozen=True)
class _Connection:
    """An open client; `owner_pid` is None for a Temporal that is not embedded or that this process owns."""

    client: Client
    owner_pid: int | None = None


_connections: Final[Shared[_Connection]] = Shared()


@asynccontextmanager
async def temporal_client(settings: TemporalSettings) -> AsyncIterator[Client]:
    """Give a connected client, starting or joining an embedded server where the settings say so.

    The client is shared with everyone in this process whose settings name the same connection; the last to leave
    closes it and stops the server that this process owns. A failed open leaves nothing behind.

    Raises:
        ConfigurationError: A setting cannot work; names it.
        EmbeddedTemporalError: The embedded Temporal was not started, or not joined.
        Unavailable: The remote Temporal does not answer; names `address`.
    """
    if isinstance(settings, MemorySettings):
        async with _in_memory(settings) as client:
            yield client
    elif isinstance(settings, EmbeddedSettings):
        key = _key(settings)
        async with _connections.use(key, lambda: _embedded(settings), f"{settings.database}") as connection:
            if settings.own == "always" and connection.owner_pid is not None:
                raise EmbeddedTemporalError(
                    f"database: {settings.database} belongs to the running process {connection.owner_pid}, whose "
                    "server this process has joined; stop that process, or use another file"
                )
            yield connection.client
    else:
        tls = _tls(settings)
        async with _connections.use(_key(settings, tls), lambda: _remote(settings, tls), settings.address) as found:
            yield found.client


def users_of(settings: TemporalSettings) -> int:
    """Return how many in this process and loop share the connection that `settings` name."""
    if isinstance(settings, MemorySettings):
        return 0
    if isinstance(settings, EmbeddedSettings):
        return _connections.users(_key(settings))
    return _connections.users(_key(settings, _tls(settings)))


def _key(settings: EmbeddedSettings | RemoteSettings, tls: TLSConfig | bool = False) -> Hashable:
    if isinstance(settings, EmbeddedSettings):
        return ("embedded", str(resolved(settings.database)))
    return ("remote", settings.address, settings.namespace, _tls_digest(tls), settings.key_digest)


# --- embedded ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _in_memory(settings: MemorySettings) -> AsyncIterator[Client]:
    async with await EmbeddedTemporal.start(
        None, binary_path=settings.binary_path, startup_timeout_s=settings.startup_timeout_s
    ) as server:
        yield await _local_client(server.address)


@asynccontextmanager
async def _embedded(settings: EmbeddedSettings) -> AsyncIterator[_Connection]:
    """Own the database's server or join the running one, whichever the settings and the moment allow."""
    deadline = asyncio.get_running_loop().time() + settings.startup_timeout_s
    while True:
        if settings.own != "always":
            joined = await _join(settings, deadline)
            if joined is not None:
                yield joined
                return
        try:
            server = await EmbeddedTemporal.start(
                settings.database,
                binary_path=settings.binary_path,
                ui=settings.ui,
                startup_timeout_s=settings.startup_timeout_s,
            )
        except DatabaseHeldError:
            if settings.own == "always" or asyncio.get_running_loop().time() > deadline:
                raise
            continue  # someone was faster: join them
        async with server:
            yield _Connection(await _local_client(server.address))
        return


async def _join(settings: EmbeddedSettings, deadline: float) -> _Connection | None:
    """Join the server that runs, waiting for one that is starting; None when the database is to be owned."""
    while True:
        record = find_record(settings.database)
        if record is not None and record.address is not None:
            try:
                return _Connection(await _local_client(record.address), record.owner_pid)
            except Unavailable:
                if find_record(settings.database) == record and asyncio.get_running_loop().time() > deadline:
                    raise
        elif record is None and settings.own == "auto":
            return None
        elif record is None:
            raise EmbeddedTemporalError(
                f"database: no server runs on {settings.database}; start one with `perdure serve` or `perdure run`, "
                "or name the file of the one that runs"
            )
        elif asyncio.get_running_loop().time() > deadline:
            raise EmbeddedTemporalError(
                f"database: the server of process {record.owner_pid} on {settings.database} has not come up within "
                f"{settings.startup_timeout_s:g} s (startup_timeout_s)"
            )
        await asyncio.sleep(JOIN_POLL_S)


async def _local_client(address: str) -> Client:
    try:
        return await Client.connect(
            address,
            data_converter=DATA_CONVERTER,
            interceptors=INTERCEPTORS,
            runtime=sdk_runtime(),
            grpc_compression=GrpcCompression.NONE,  # nothing to gain on loopback, and the cores are needed
        )
    except (RuntimeError, RPCError) as error:
        raise EmbeddedTemporalError(f"the embedded Temporal at {address} does not answer: {error}") from error


# --- remote -----------------------------------------------------------------------------------------------------

_REFUSED = {RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED}


@asynccontextmanager
async def _remote(settings: RemoteSettings, tls: TLSConfig | bool) -> AsyncIterator[_Connection]:
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            client = await Client.connect(
                settings.address,
                namespace=settings.namespace,
                api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
                tls=tls,
                data_converter=DATA_CONVERTER,
                interceptors=INTERCEPTORS,
                runtime=sdk_runtime(),
                connect_timeout=timedelta(seconds=settings.connect_timeout_s),
            )
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=settings.namespace))
    except TimeoutError as error:
        raise Unavailable(_unreachable(settings, f"no answer within {settings.connect_timeout_s:g} s")) from error
    except ValueError as error:
        raise ConfigurationError("address", f"{settings.address!r} is no address: {error}") from error
    except RuntimeError as error:  # what a failed connect raises, whatever the cause
        raise _connect_failure(settings, str(error)) from error
    except RPCError as error:
        raise _answered_no(settings, error) from error
    yield _Connection(client)


def _connect_failure(settings: RemoteSettings, text: str) -> ConfigurationError | Unavailable:
    if "PrivateKeyParseError" in text or "CertificateParseError" in text:
        return ConfigurationError("tls", f"a certificate or key file is not PEM as TLS needs it ({text})")
    if any(word in text for word in ("Unauthenticated", "PermissionDenied")):
        return ConfigurationError("api_key", f"Temporal at {settings.address} refuses it; check TEMPORAL_API_KEY")
    return Unavailable(_unreachable(settings, text))


def _answered_no(settings: RemoteSettings, error: RPCError) -> ConfigurationError | Unavailable:
    if error.status == RPCStatusCode.NOT_FOUND:
        return ConfigurationError(
            "namespace", f"{settings.namespace!r} does not exist at {settings.address}; create it, or name another"
        )
    if error.status in _REFUSED:
        field = "tls.client_cert" if settings.api_key is None else "api_key"
        return ConfigurationError(
            field, f"Temporal at {settings.address} refuses it for namespace {settings.namespace!r} ({error.message})"
        )
    return Unavailable(_unreachable(settings, f"{error.status.name}: {error.message}"))


def _unreachable(settings: RemoteSettings, why: str) -> str:
    spoken = "with TLS" if settings.uses_tls else "without TLS"
    return f"address: Temporal at {settings.address} does not answer {spoken}; check address and tls ({why})"


def _tls(settings: RemoteSettings) -> TLSConfig | bool:
    """Read the files that the settings name; raises `ConfigurationError` for one that cannot be read."""
    tls = settings.tls
    if tls is None or isinstance(tls, bool):
        return settings.uses_tls
    return TLSConfig(
        server_root_ca_cert=_read("tls.ca", tls.ca),
        client_cert=_read("tls.client_cert", tls.client_cert),
        client_private_key=_read("tls.client_key", tls.client_key),
        domain=tls.server_name,
    )


def _read(field: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise ConfigurationError(field, f"cannot be read: {error}") from error


def _tls_digest(tls: TLSConfig | bool) -> str:
    if isinstance(tls, bool):
        return str(tls)
    parts = (tls.server_root_ca_cert, tls.client_cert, tls.client_private_key, (tls.domain or "").encode())
    return hashlib.sha256(b"".join(hashlib.sha256(part or b"").digest() for part in parts)).hexdigest()
