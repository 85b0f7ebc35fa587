"""What is shown of a call's arguments: everything where it fits, else the beginning of everything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from perdure.core.shortening import shortened, shown_call

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


def test_small_ones_are_whole() -> None:
    assert shortened("pay", {"b": 1, "a": "x"}, 100) == ('{"a":"x","b":1}', False)


def test_of_large_ones_every_name_stays_and_what_was_cut_is_said() -> None:
    long: dict[str, JsonValue] = {
        "to": "Zoë",
        "text": "x" * 9_000,
        "items": list(range(900)),
        "deep": [[["y" * 9_000]]],
    }
    shown, cut = shortened("pay", long, 8_192)
    found = json.loads(shown)
    assert cut
    assert found["to"] == "Zoë"
    assert found["text"] == "x" * 2_048 + "… [cut, 9000 bytes]"
    assert found["items"] == [*range(50), "… [and 850 more]"]
    assert found["deep"][0][0][0].endswith("… [cut, 9000 bytes]")


def test_more_values_than_fit_are_cut_to_less_each() -> None:
    shown, cut = shortened("pay", {f"field-{n}": "z" * 900 for n in range(20)}, 8_192)
    assert cut
    assert all(text.startswith("z" * 128) for text in json.loads(shown).values())


@pytest.mark.parametrize(
    "arguments",
    [
        {"accounts": [7] * 4_000, "total": 5_000_000, "to": "mallory"},
        {"a_note": "\u200b" * 2_600, "amount": 150, "to": "mallory"},
        {**{f"a_{n}": "x" * 250 for n in range(60)}, "to": "mallory"},
    ],
    ids=["separators", "escapes", "names"],
)
def test_no_long_value_pushes_another_out_of_sight(arguments: dict[str, JsonValue]) -> None:
    shown, cut = shortened("pay", arguments, 8_192)
    assert cut
    assert 'to="mallory"' in shown_call("pay", shown, 8_192)


def test_names_that_fill_it_alone_are_cut_as_one_text() -> None:
    shown, cut = shortened("pay", {"n" * 9_000: "\x00"}, 8_192)
    assert cut
    assert json.loads(shown)["…"].startswith('{"nnnn')


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES))
def test_it_fits_and_is_json_whatever_they_are(arguments: dict[str, JsonValue]) -> None:
    shown, cut = shortened("pay", arguments, 256)
    assert len(shown.encode()) <= 256
    assert not shown_call("pay", shown, 256).endswith("… [cut]") or "… [cut]" in shown
    assert isinstance(json.loads(shown), dict)
    assert cut or json.loads(shown) == arguments
