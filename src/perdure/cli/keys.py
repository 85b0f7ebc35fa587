"""`perdure keys`: API keys of the front door. They are in the store, so that every server over it knows them.

A key is shown when it is made, and never again: the store has a digest of it. Its text alone is on standard output, so
that it can go straight to where secrets are kept.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer

from perdure.a2a.keys import new_key
from perdure.app.clock import now_ms
from perdure.app.settings import Settings
from perdure.cli.output import note
from perdure.cli.places import data_folder, existing_store
from perdure.cli.tables import print_table
from perdure.core.access import ApiKey
from perdure.core.errors import InvalidInput
from perdure.core.ports import Store
from perdure.store import open_store

keys = typer.Typer(
    name="keys",
    help="Make, list and revoke API keys.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@keys.command("add")
def add(
    principal: Annotated[
        str, typer.Argument(metavar="PRINCIPAL", help="Who it is for: tasks made with it are theirs.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a key and show it, once.

    Keys of one principal see the same tasks. A server takes keys when it
    runs with PERDURE_AUTH=keys; clients send one as X-API-Key.
    """
    made = new_key(principal, now_ms())
    asyncio.run(_add(Settings.from_environment(), made.kept))
    if as_json:
        print(json.dumps({"key_id": made.kept.key_id, "principal": principal, "key": made.text}))
        return
    print(made.text, flush=True)
    note(
        f"key {made.kept.key_id} for {principal}; it is not shown again. Revoke it with: perdure keys revoke "
        f"{made.kept.key_id}"
    )


@keys.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List keys, the oldest first, without their secrets."""
    found = asyncio.run(_list(Settings.from_environment()))
    if as_json:
        for key in found:
            print(json.dumps(key.model_dump(exclude={"secret_digest"})))
        return
    print_table(
        "",
        ("key", "principal", "made", "state"),
        ((key.key_id, key.principal, _day(key.created_at_ms), _state(key)) for key in found),
        "no keys yet; make one with: perdure keys add PRINCIPAL",
    )


@keys.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as `perdure keys list` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a key for good. The next request with it is refused."""
    key = asyncio.run(_revoke(Settings.from_environment(), key_id))
    if key is None:
        raise InvalidInput("KEY", f"there is no key {key_id!r}; `perdure keys list` shows those that there are")
    if as_json:
        print(json.dumps(key.model_dump(exclude={"secret_digest"})))
        return
    print(f"key {key.key_id} for {key.principal} is revoked")


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[Store]:
    data_folder(settings)
    store = await open_store(settings.store_url)
    try:
        yield store
    finally:
        await store.close()


async def _add(settings: Settings, key: ApiKey) -> None:
    async with _store(settings) as store:
        await store.add_key(key)


async def _list(settings: Settings) -> tuple[ApiKey, ...]:
    async with existing_store(settings) as store:
        return () if store is None else await store.keys()


async def _revoke(settings: Settings, key_id: str) -> ApiKey | None:
    async with existing_store(settings) as store:
        return None if store is None else await store.revoke_key(key_id, now_ms())


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def _state(key: ApiKey) -> str:
    return "good" if key.revoked_at_ms is None else f"revoked {_day(key.revoked_at_ms)}"
