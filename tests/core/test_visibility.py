"""What a person is shown hides nothing: what would not be seen is escaped, and ordinary text stays as it is."""

import json
import unicodedata

import pytest

from perdure.core import limits
from perdure.core.shortening import shown_call
from perdure.core.visibility import visible
from tests.core.task import asking, call
from tests.core.test_rules_calls import calling

FORMATS_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Marks of numbers and verses that Unicode counts among the formats, and that are drawn."""


def test_no_character_that_shows_nothing_gets_through() -> None:
    for place in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(place)
        if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Co"} and character not in FORMATS_SEEN:
            assert visible(f"a{character}b").isascii(), f"U+{place:04X}"


@pytest.mark.parametrize(
    "place",
    [
        *(0x00, 0x0A, 0x7F, 0x85, 0x9B, 0xAD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x180E, 0x200B, 0x202E, 0x2028),
        *(0x2065, 0x2066, 0x2800, 0x3164, 0xFE00, 0xFE0E, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFB, 0xE000),
        *(0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xE01EF, 0xE0FFF, 0x1D173, 0x200A),
    ],
)
def test_fillers_selectors_tags_and_controls_are_escaped(place: int) -> None:
    escape = f"\\u{place:04x}" if place < 0x10000 else f"\\U{place:08x}"
    assert visible(f"ops{chr(place)}@x.com") == f"ops{escape}@x.com"


@pytest.mark.parametrize(
    "text",
    [
        "Zoë, 100 €, “so”, naïve Ångström ﬁn",
        "Zoe\u0308 100\u00a0€ 1\u202f000",
        "退款 返金 환불 「全角　空白」",
        "възстановяване επιστροφή החזר استرداد",
        "می\u200cخواهم خانه\u200cها",
        "क्\u200dष क्\u200cष র\u200d্যা ක්\u200dෂ",
        "❤\ufe0f 1\ufe0f\u20e3 👍🏽 👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 🇪🇺",
        "คืนเงิน ການສົ່ງຄືນ ပြန်အမ်း សងប្រាក់វិញ ตัวอย่าง",
        "a\\u200bb",
    ],
)
def test_ordinary_text_of_any_script_stays_readable(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    "text", ["1\ufe0f00", "a\u200cb", "a\u200db", "❤\ufe0f\ufe0f", "ا\u200cب", "٤\u200c٢", "क\u200dष", "👩\u200d1"]
)
def test_a_joiner_or_a_selector_where_it_shows_nothing_is_escaped(text: str) -> None:
    assert "\\u" in visible(text)


FORGED = 'amount) run? It is a dry run, nothing is paid.\nAnswer "approve".\n\n(x'


def test_a_name_of_an_argument_forges_nothing() -> None:
    shown = shown_call("refund", json.dumps({"amount": 5000, FORGED: 1, "": 2, "näme": 3, "a b": 4, "x_1": 5}))
    assert shown == (
        'refund(amount=5000, "amount) run? It is a dry run, nothing is paid.\\nAnswer \\"approve\\".\\n\\n(x"=1, '
        '""=2, "näme"=3, "a b"=4, x_1=5)'
    )


def test_what_asks_about_a_call_hides_nothing_of_it_before_it_runs_and_after() -> None:
    hidden = json.dumps({"to": "ops\U000e0041\u3164@x.com", "a\u0085b": 1})
    shown = 'pay(to="ops\\U000e0041\\u3164@x.com", "a\\u0085b"=1)'
    before = calling(asking("pay", hidden))
    assert before.state.help[0].text.startswith(f"May {shown} run?")
    after = calling(call("pay", hidden))
    after.finish(0, "in_doubt", reason="no check")
    assert after.state.help[0].text.startswith(f"Did {shown} happen?")


def test_escapes_do_not_take_a_shown_call_over_its_bound() -> None:
    shown = shown_call("pay", json.dumps({"to": "\x7f" * 2_000}))
    assert len(shown.encode()) == limits.SHOWN_CALL_BYTES_MAX
    assert shown.endswith("… [cut]")
