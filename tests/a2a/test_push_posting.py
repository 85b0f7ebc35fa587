"""One notification by itself: what is no answer, whom TLS trusts, and what a receiver may ask for."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from perdure.a2a.push_posting import Outcome, Poster, Target
from perdure.core import limits, push_limits
from tests.a2a.pushing import LOOPBACK

SAID = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n%s\r\n"


@contextlib.asynccontextmanager
async def answering(answer: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer every request with these bytes, None for never; yield the port."""

    ended: list[asyncio.Task[object] | None] = []

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await reader.read(1)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    server = await asyncio.start_server(answered, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(task for task in ended if task is not None))


async def posted(url: str, timeout_s: float = 5.0) -> Outcome:
    poster = Poster([LOOPBACK], timeout_s)
    try:
        return await poster.post(Target(url), b"{}", "t-1/mine/1")
    finally:
        await poster.close()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (SAID % (b"200 OK", b""), Outcome()),
        (SAID % (b"204 No Content", b""), Outcome()),
        (SAID % (b"301 Moved", b"Location: http://127.0.0.1/\r\n"), Outcome("answered 301")),
        (SAID % (b"410 Gone", b""), Outcome("answered 410", gone=True)),
        (SAID % (b"503 Later", b"Retry-After: 7\r\n"), Outcome("answered 503", 7_000)),
        (SAID % (b"429 Later", b"Retry-After: 99999999999\r\n"), Outcome("answered 429", limits.RETRY_AFTER_MAX_MS)),
        (SAID % (b"503 Later", b"Retry-After: tomorrow\r\n"), Outcome("answered 503")),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2 * push_limits.ANSWER_BYTES_MAX, Outcome()),
    ],
)
async def test_what_is_taken_and_what_is_not(answer: bytes, outcome: Outcome) -> None:
    async with answering(answer) as port:
        assert await posted(f"http://127.0.0.1:{port}/") == outcome


async def test_what_is_no_answer() -> None:
    async with answering(b"not http at all\r\n\r\n") as port:
        assert (await posted(f"http://127.0.0.1:{port}/")).problem
    assert (await posted(f"http://127.0.0.1:{port}/")).problem == f"nobody answers at port {port}"
    assert "leads nowhere" in (await posted("http://nobody.invalid/")).problem
    async with answering(None) as port:
        assert (await posted(f"http://127.0.0.1:{port}/", 0.2)).problem == "no answer within 0.2 s"


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed(tmp_path))
    async with answering(SAID % (b"200 OK", b""), tls) as port:
        assert "CERTIFICATE_VERIFY_FAILED" in (await posted(f"https://127.0.0.1:{port}/")).problem


def self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.fromtimestamp(folder.stat().st_mtime, datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "both.pem"
    path.write_bytes(private + made.public_bytes(form))
    return path
