"""`perdure keys`: a key is shown once; what is kept and listed has no secret."""

import json
import stat
from pathlib import Path

import pytest

from perdure.app.entry import EntrySettings
from perdure.cli.main import run_command
from perdure.cli.masking import masked
from perdure.cli.serve import _refuse_open_door
from perdure.core.errors import ConfigurationError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("PERDURE_HOME", str(home))
    return home


def test_a_key_is_made_listed_and_revoked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["keys", "add", "alice"]) == 0
    shown = capsys.readouterr()
    key = shown.out.strip()
    _, key_id, secret = key.split("_")
    assert secret not in shown.err
    assert run_command(["keys", "add", "bob", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["principal"] == "bob"
    assert run_command(["keys", "revoke", key_id]) == 0
    assert run_command(["keys", "revoke", key_id]) == 0  # again changes nothing
    capsys.readouterr()
    assert run_command(["keys", "list", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["key_id"], first["principal"], second["revoked_at_ms"]) == (key_id, "alice", None)
    assert first["revoked_at_ms"] > first["created_at_ms"] - 1
    assert "secret_digest" not in first
    assert run_command(["keys", "list"]) == 0
    assert "revoked" in capsys.readouterr().out
    kept = b"".join(path.read_bytes() for path in home.iterdir())
    assert secret.encode() not in kept
    assert key_id.encode() in kept
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in home.iterdir())


def test_asking_makes_no_store_and_wrong_use_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["keys", "list"]) == 0
    assert "perdure keys add PRINCIPAL" in capsys.readouterr().out
    assert run_command(["keys", "revoke", "nothing"]) == 2
    assert "`perdure keys list`" in capsys.readouterr().err
    assert not home.exists()
    for wrong in (["keys", "add", ""], ["keys", "add", "a\nb"], ["keys", "add"], ["keys", "burn"]):
        assert run_command(wrong) == 2, wrong
        assert capsys.readouterr().err
    assert not list(home.glob("*.db"))


def test_a_door_beyond_this_machine_is_locked_or_refused() -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "example.org"):
        with pytest.raises(ConfigurationError, match="perdure keys add"):
            _refuse_open_door(host, EntrySettings())
        _refuse_open_door(host, EntrySettings(keys=True))
    _refuse_open_door("127.0.0.1", EntrySettings())


def test_what_opens_doors_is_masked() -> None:
    key = f"perdure_0123456789ab_{'5' * 64}"
    for secret, shown in {
        f"with {key} it": "with perdure_0123456789ab_*** it",
        "Authorization: Bearer abcdefgh.ijk": "Authorization: Bearer ***",
        "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln": "eyJhbGciOiJFUzI1NiJ9.***",
        "postgresql://me:pass@host/db": "postgresql://me:***@host/db",
    }.items():
        assert masked(secret) == shown
    for plain in ("the bearer of news", "http://127.0.0.1:8000/a@b", "t-1 at perdure_home"):
        assert masked(plain) == plain
