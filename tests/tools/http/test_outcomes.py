"""The table of outcomes, row by row, as the file that decides them states it."""

import pytest

from perdure.core.agent import EffectClass
from perdure.tools.http.answers import value_of
from perdure.tools.http.client import Answer
from perdure.tools.http.outcomes import Meaning, meaning, retry_after_s

IN_PROGRESS = b'{"code": "idempotency_key_in_use"}'
TAKEN = b'{"problem": "this address is registered"}'

ROWS: list[tuple[tuple[int, ...], bytes, Meaning, Meaning, Meaning]] = [
    # statuses, body, and what they mean for read, idempotent, once
    ((200, 201, 202, 204, 206, 299), b"", "done", "done", "done"),
    ((303,), b"", "refused", "done", "done"),
    ((304,), b"", "done", "done", "done"),
    ((300, 301, 302), b"", "refused", "refused", "in_doubt"),
    ((305, 307, 308), b"", "refused", "refused", "refused"),
    ((408,), b"", "again", "again", "in_doubt"),
    ((409, 422), IN_PROGRESS, "refused", "again", "in_doubt"),
    ((409, 422), TAKEN, "refused", "refused", "refused"),
    ((425, 429), b"", "again", "again", "refused"),
    ((400, 401, 403, 404, 405, 410, 412, 413, 451, 499), IN_PROGRESS, "refused", "refused", "refused"),
    ((501, 505), b"", "refused", "refused", "refused"),
    ((500, 502, 503, 504, 507, 599), b"", "again", "again", "in_doubt"),
]


@pytest.mark.parametrize(("status", "body", "expected"), [(s, row[1], row[2:]) for row in ROWS for s in row[0]])
def test_what_a_status_means(status: int, body: bytes, expected: tuple[Meaning, ...]) -> None:
    classes: tuple[EffectClass, ...] = ("read", "idempotent", "once")
    assert tuple(meaning(status, effect, "POST", 1, body) for effect in classes) == expected


def test_what_is_gone_after_an_earlier_try_to_delete_it_was_deleted() -> None:
    for status in (404, 410):
        assert meaning(status, "idempotent", "DELETE", 1) == "refused"
        assert meaning(status, "idempotent", "DELETE", 2) == "done"
        assert meaning(status, "idempotent", "PUT", 2) == "refused"
        assert meaning(status, "once", "DELETE", 1) == "refused"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("99999999999", 900.0),
        ("", None),
        ("-1", None),
        ("\u00b2", None),
        ("\u0663", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_how_long_a_service_asks_to_be_left_alone(given: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": given}) == seconds


@pytest.mark.parametrize("charset", ["undefined", "idna", "rot13", "nothing", "utf-8"])
def test_a_text_is_read_whatever_it_says_of_its_characters(charset: str) -> None:
    """It was answered after the effect: nothing may fail for it."""
    answer = Answer(200, {"content-type": f"text/html; charset={charset}"}, b"ok")
    assert str(value_of(answer, "POST", "file")).startswith("ok")
