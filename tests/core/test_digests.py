"""Canonical forms, digests, and texts that can be stored and shown (B14, B15)."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from perdure.core.content import Message, TextPart
from perdure.core.digests import body_of, canonical, chained, cut_text, digest, safe_json, safe_text

ANY_TEXT = st.text(st.characters(codec=None))


def test_the_canonical_form_is_fixed_for_ever() -> None:
    value: JsonValue = {"b": [1, 2.5, None, True], "a": "ü\n"}
    assert canonical(value) == '{"a":"ü\\n","b":[1,2.5,null,true]}'.encode()
    assert digest(value) == "64863a63fa20a04b68aba9cb09fc3a00c9d495ac4ac6515156a9db8860bef5bf"
    assert chained("", "x") == hashlib.sha256(b"/x").hexdigest()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), "\ud800"])
def test_what_has_no_canonical_form_is_refused(bad: float | str) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|surrogates"):
        canonical({"x": bad})


def test_a_model_has_one_body() -> None:
    body = body_of(Message(message_id="m", parts=(TextPart(text="hi"),)))
    assert body == {"message_id": "m", "parts": [{"kind": "text", "text": "hi"}]}


def test_b15_nul_and_lone_surrogates_are_replaced() -> None:
    assert safe_text("a\x00b\ud800c\udfffd") == "a\ufffdb\ufffdc\ufffdd"
    assert safe_text("plain, ü, 😀") == "plain, ü, 😀"
    assert safe_json({"k\x00": ["\ud800", {"x": 1}], "n": None}) == {"k\ufffd": ["\ufffd", {"x": 1}], "n": None}


@given(ANY_TEXT)
def test_b15_safe_text_can_always_be_encoded_and_is_stable(text: str) -> None:
    safe = safe_text(text)
    assert "\x00" not in safe
    assert safe.encode().decode() == safe
    assert safe_text(safe) == safe
    assert len(safe) == len(text)
    json.loads(canonical(safe))


def test_b14_text_is_cut_on_a_character_boundary_with_a_notice() -> None:
    assert cut_text("x" * 10, 10, "…") == "x" * 10
    assert cut_text("üüüüü", 8, "!") == "üüü!"
    assert cut_text("😀😀", 5, "!") == "😀!"
    with pytest.raises(ValueError, match="bytes_max: 3 bytes have no room for the notice"):
        cut_text("long text", 3, " [cut]")
    with pytest.raises(ValueError, match="surrogates"):
        cut_text("\ud800", 10, "!")


@given(ANY_TEXT.map(safe_text), st.integers(6, 60))
def test_b14_a_cut_text_fits_and_begins_as_the_whole(text: str, bytes_max: int) -> None:
    shown = cut_text(text, bytes_max, " [cut]")
    assert len(shown.encode()) <= bytes_max
    assert shown == text or (shown.endswith(" [cut]") and text.startswith(shown.removesuffix(" [cut]")))
