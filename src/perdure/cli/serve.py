"""`perdure serve`: an agent's front door, its workers and the embedded Temporal in one command.

The server holds nothing that is not in the store or in Temporal. Killed at any moment and started again it goes on
where it was; clients come back with the number of the last event that they saw.
"""

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
import uvicorn
from sse_starlette.sse import AppStatus

from perdure.app.agent import Agent
from perdure.app.app import App, open_app
from perdure.app.entry import EntryLimits, EntrySettings, is_loopback
from perdure.app.faults import armed
from perdure.app.loading import load_agent
from perdure.app.newborn import LOG_FORMAT
from perdure.app.offer import OPTIONAL, Offer
from perdure.app.settings import Settings
from perdure.app.supervisor import Change, Fleet, supervised
from perdure.cli.masking import mask_logs
from perdure.cli.places import Origin, data_folder, remember, worker_log
from perdure.cli.signals import Interrupted, first_of, until_signal
from perdure.cli.temporal_watch import until_temporal_ends
from perdure.core import door_limits, fleet_limits, limits
from perdure.core.errors import ConfigurationError, Unavailable
from perdure.temporal.connection import temporal_client

if TYPE_CHECKING:
    from perdure.a2a.rpc import GrpcDoor

GRACE_S: Final = 2
"""How long requests may take to end when the server does: streams are cut and go on elsewhere, the rest is short."""


def serve(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="A TOML file, or module:agent.")],
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="How clients reach it, where that is not ADDRESS:PORT.")
    ] = None,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Work on the tasks too, or only serve.")] = True,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=fleet_limits.WORKER_PROCESSES_MAX,
            metavar="N",
            help="Worker processes; one more always stands by.",
        ),
    ] = 1,
    drain_s: Annotated[
        float, typer.Option("--drain", min=0, metavar="SECONDS", help="How long begun calls may take to end.")
    ] = limits.DRAIN_S,
    grpc_port: Annotated[
        int | None,
        typer.Option("--grpc-port", min=0, max=65535, help="Serve gRPC too, on this port; 0 takes a free one."),
    ] = None,
    off: Annotated[
        list[str] | None,
        typer.Option("--off", metavar="WHAT", help=f"Leave something out: {', '.join(OPTIONAL)}. May be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Serve an agent over A2A until SIGTERM or Ctrl-C, and work on its tasks.

    Its card is at URL/.well-known/agent-card.json; JSON-RPC and HTTP+JSON
    are both at URL, gRPC at a port of its own. What was accepted is kept and
    goes on at the next start, whatever is killed. With --no-worker another
    `perdure worker AGENT` over the same data folder works.

    PERDURE_AUTH=keys lets in who has an API key (`perdure keys add NAME`),
    jwt who has a token of an issuer, keys,jwt both. Without it nobody is
    asked, and the server listens on this machine alone.

    Exits with 143 after SIGTERM and 130 after Ctrl-C, as every command does.
    """
    offer = Offer().without(_left_out(off or []))
    settings = Settings.from_environment()
    _refuse_open_door(host, settings.entry)
    data_folder(settings)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=LOG_FORMAT)
    mask_logs()
    logging.getLogger("a2a").setLevel(logging.ERROR)  # a client's mistake is told to the client
    loaded = load_agent(agent)
    remember(settings, loaded.id, Origin(agent, Path.cwd()))
    with contextlib.closing(_listener(host, port)) as listener, armed(os.environ):
        door = _Door(loaded, listener, url or _url(host, listener), as_json, offer, host, grpc_port)
        fleet = None
        if worker:
            fleet = Fleet(
                agent,
                loaded.id,
                Path.cwd(),
                log=worker_log(settings),
                processes=processes,
                drain_s=drain_s,
                rosters=settings.home / "workers",
            )
        try:
            asyncio.run(until_signal(_serve(door, fleet, settings), lambda number: None))
        except Interrupted as interrupted:
            raise typer.Exit(128 + interrupted.number) from interrupted


@dataclass(frozen=True)
class _Door:
    agent: Agent
    listener: socket.socket
    url: str
    as_json: bool
    offer: Offer
    host: str
    grpc_port: int | None


class _Server(uvicorn.Server):
    """A server that leaves signals to this command."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


async def _serve(door: _Door, fleet: Fleet | None, settings: Settings) -> None:
    async with contextlib.AsyncExitStack() as stack:
        rpc = None if door.grpc_port is None else _grpc_door(door.host, door.grpc_port, settings.entry.limits)
        app = await stack.enter_async_context(open_app(door.agent, settings=settings, worker=False))
        if rpc is not None:
            door = replace(door, offer=replace(door.offer, grpc=rpc.address))
            await rpc.open(app, door.url, door.offer)
            stack.push_async_callback(rpc.close, GRACE_S)
        served = _answer(door, app)
        if fleet is not None:
            client = await stack.enter_async_context(temporal_client(settings.temporal))
            supervisor = await stack.enter_async_context(
                supervised(fleet, client, lambda change: _tell_of_worker(change, door.as_json))
            )
            served = first_of(served, supervisor.watch())
        await first_of(served, until_temporal_ends(settings))


async def _answer(door: _Door, app: App) -> None:
    """Answer requests until cancelled; then end those under way, within GRACE_S."""
    config = uvicorn.Config(
        app.asgi(door.url, offer=door.offer),
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[door.listener]))
    telling = asyncio.create_task(_tell_when_ready(server, door))
    try:
        await asyncio.shield(serving)
        raise Unavailable(f"the server at {door.url} has ended by itself")
    finally:
        telling.cancel()
        server.should_exit = True
        AppStatus.should_exit = True  # what streams look at; it is this process's, which ends
        await asyncio.wait([serving])


def _grpc_door(host: str, port: int, bounds: EntryLimits) -> "GrpcDoor":
    """Take the address for gRPC."""
    try:
        from perdure.a2a.rpc import GrpcDoor  # noqa: PLC0415 - grpc is an extra, for those who serve it
    except ImportError as error:
        raise ConfigurationError("--grpc-port", "needs grpc; install it with: pip install 'perdure[grpc]'") from error
    return GrpcDoor(host, port, bounds)


async def _tell_when_ready(server: uvicorn.Server, door: _Door) -> None:
    while not server.started:  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.01)
    said = {"event": "ready", "agent": door.agent.id, "url": door.url, "pid": os.getpid()}
    if door.offer.grpc:
        said["grpc"] = door.offer.grpc
    at = f"{door.url}, gRPC at {door.offer.grpc}" if door.offer.grpc else door.url
    print(json.dumps(said) if door.as_json else f"{door.agent.id} is served at {at}", flush=True)


def _tell_of_worker(change: Change, as_json: bool) -> None:
    if as_json:
        said = {"event": f"worker.{change.kind}", "part": change.part, "pid": change.pid, "text": change.text}
        print(json.dumps({**said, "at_ms": change.at_ms, "code": change.code, "failed": change.failed}), flush=True)
    elif change.kind != "ready":
        print(change.text, flush=True)


# --- where --------------------------------------------------------------------------------------------------------


def _left_out(names: list[str]) -> list[str]:
    for name in names:
        if name not in OPTIONAL:
            raise ConfigurationError("--off", f"{name!r} is nothing that can be left out; use {', '.join(OPTIONAL)}")
    return names


def _refuse_open_door(host: str, entry: EntrySettings) -> None:
    """Refuse to listen beyond this machine where nobody would be asked who they are."""
    if not entry.authenticates and not is_loopback(host):
        raise ConfigurationError(
            "--host",
            f"{host!r} is beyond this machine, and without authentication anybody there could give the agent work; "
            "listen on 127.0.0.1, or set PERDURE_AUTH=keys and make a key with `perdure keys add NAME`",
        )


def _listener(host: str, port: int) -> socket.socket:
    """Return the listening socket, bound before anything is started: a port that is taken changes nothing."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; its connections inherit it
            unread_ms = int(door_limits.CONNECTION_STALL_S * 1_000)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError("--port", f"{host}:{port} cannot be used: {error.strerror}; give another") from error
    return listener


def _url(host: str, listener: socket.socket) -> str:
    return f"http://{host}:{listener.getsockname()[1]}"
