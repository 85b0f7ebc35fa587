"""The parts of push by themselves: addresses, seals, turns."""

import asyncio
import base64
import os
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from pydantic import SecretStr

from perdure.a2a.push_addresses import checked_url, looked_up, refuse_inside
from perdure.a2a.push_lease import Turn
from perdure.a2a.push_secrets import Seals, seals_of
from perdure.app.settings import Settings
from perdure.core.errors import ConfigurationError, Diverged, InvalidInput
from perdure.store import open_store
from perdure.temporal.settings import MemorySettings
from tests.temporal.bench import until

INSIDE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "240.0.0.1",
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:7f00:1::1",
]
OUTSIDE = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14"]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_refused_in_every_form_that_reaches_it(address: str) -> None:
    with pytest.raises(InvalidInput, match="PERDURE_PUSH_NETWORKS"):
        refuse_inside("url", [ip_address("93.184.215.14"), ip_address(address)], [])
    with pytest.raises(InvalidInput, match="not public"):
        checked_url("url", f"https://{f'[{address}]' if ':' in address else address}/hook")


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_outside_is_not(address: str) -> None:
    refuse_inside("url", [ip_address(address)], [])
    assert checked_url("url", f"https://{f'[{address}]' if ':' in address else address}:8443/hook").port == 8443


def test_only_the_networks_that_were_named_are_open() -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    refuse_inside("url", [ip_address("10.1.2.3"), ip_address("fd00::1"), ip_address("::ffff:10.1.2.3")], allowed)
    for other in ("10.2.0.1", "127.0.0.1", "::1"):
        with pytest.raises(InvalidInput):
            refuse_inside("url", [ip_address(other)], allowed)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "https:///path",
        "https://a b/",
        "https://[::1",
        "https://é.org/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://db.internal/",
        "https://example.org:0/",
        "https://u@h.org/",
    ],
)
def test_what_is_no_webhook(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        checked_url("url", url)


async def test_all_that_a_name_leads_to_is_looked_up() -> None:
    assert ip_address("127.0.0.1") in await looked_up("localhost", 80)
    assert await looked_up("127.1", 80) == [ip_address("127.0.0.1")]
    assert await looked_up("::1", 80) == [ip_address("::1")]


def test_what_is_sealed_opens_only_for_what_it_was_sealed_for() -> None:
    seals = Seals(os.urandom(32))
    sealed = seals.seal(b"secret", "t-1", "mine")
    assert seals.open(sealed, "t-1", "mine") == b"secret"
    assert seals.seal(b"secret", "t-1", "mine") != sealed
    for other, names in ((seals, ("t-2", "mine")), (seals, ("t-1", "other")), (Seals(os.urandom(32)), ("t-1", "mine"))):
        with pytest.raises(Diverged, match="PERDURE_SECRETS_KEY"):
            other.open(sealed, *names)
    with pytest.raises(Diverged):
        seals.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "t-1", "mine")


def settings(home: Path, key: str | None = None, store_url: str = "sqlite:////nowhere/store.db") -> Settings:
    secret = None if key is None else SecretStr(key)
    return Settings(home=home, temporal=MemorySettings(), store_url=store_url, secrets_key=secret)


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = seals_of(settings(home)), seals_of(settings(home))
    assert first is not None
    assert second is not None
    assert first.key_id == second.key_id
    assert [path.name for path in home.iterdir()] == ["secrets.key"]
    path = home / "secrets.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert seals_of(settings(home)) is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_of_the_environment_makes_no_file_and_a_bad_one_is_named(tmp_path: Path) -> None:
    given = base64.b64encode(bytes(range(32))).decode()
    found = seals_of(settings(tmp_path, given, "postgresql://somewhere/store"))
    assert found is not None
    assert found.key_id == Seals(bytes(range(32))).key_id
    assert list(tmp_path.iterdir()) == []
    for bad in ("hello", base64.b64encode(b"short").decode()):
        with pytest.raises(ConfigurationError, match="PERDURE_SECRETS_KEY") as refused:
            seals_of(settings(tmp_path, bad))
        assert bad not in str(refused.value)
    (tmp_path / "secrets.key").write_text("hello")
    with pytest.raises(ConfigurationError, match=r"secrets\.key"):
        seals_of(settings(tmp_path))


def test_a_shared_store_needs_a_key_that_is_shared(tmp_path: Path) -> None:
    assert seals_of(settings(tmp_path, None, "postgresql://somewhere/store")) is None
    assert list(tmp_path.iterdir()) == []


def test_networks_come_from_the_environment(tmp_path: Path) -> None:
    given = {"PERDURE_PUSH_NETWORKS": "10.1.0.0/16, ::1/128", "PERDURE_HOME": str(tmp_path)}
    assert Settings.from_environment(given).push_networks == (ip_network("10.1.0.0/16"), ip_network("::1/128"))
    with pytest.raises(ConfigurationError, match="PERDURE_PUSH_NETWORKS"):
        Settings.from_environment({**given, "PERDURE_PUSH_NETWORKS": "10.1.0.1/16"})


async def test_a_turn_passes_when_its_holder_shows_no_sign_of_life(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/store.db")

    async def hold(turn: Turn) -> bool:
        return await turn.hold((await store.pushes.pulse("key")).lease)

    lease_s = 0.4
    one, two = Turn(store.pushes, "key", "one", lease_s), Turn(store.pushes, "key", "two", lease_s)
    assert await hold(one)
    assert not await hold(two)
    began_s = asyncio.get_running_loop().time()
    await until(lambda: hold(two))
    assert asyncio.get_running_loop().time() - began_s >= lease_s * 0.9
    assert not one.is_ours
    assert not await hold(one)
    await one.give_up()
    assert two.is_ours
    await two.give_up()
    assert not two.is_ours
    assert await hold(one)
    await store.close()
