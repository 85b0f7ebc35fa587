"""What a condition comes to where not all of it can be told: never more than is known, and never less."""

import itertools
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.conditions import CannotTell, Condition
from perdure.core.truths import alike

Told = Literal["holds", "does not", "cannot be told"]


def told(text: str, *foreign: str, **arguments: Any) -> Told:
    try:
        return "holds" if Condition(text, "when").holds(arguments, foreign) else "does not"
    except CannotTell:
        return "cannot be told"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("amount > 1000 or currency == 'BTC'", "holds"),
        ("currency == 'BTC' or amount > 1000", "holds"),
        ("currency == 'BTC' and amount < 1000", "does not"),
        ("not (currency == 'BTC' and amount < 1000)", "holds"),
        ("currency == 'BTC' or amount < 1000", "cannot be told"),
        ("currency == 'BTC' and amount > 1000", "cannot be told"),
        ("not currency == 'BTC'", "cannot be told"),
        ("amount in [currency, 5000]", "holds"),
        ("amount in [currency, 5001]", "cannot be told"),
        ("amount not in [currency, 5000]", "does not"),
        ("currency in []", "does not"),
        ("1 < amount < currency", "cannot be told"),
        ("5000 < amount < currency", "does not"),
        ("currency['x'] == 1 or amount == 5000", "holds"),
        ("order['x'] == 1 or amount == 5000", "holds"),
        ("order['x'] == 1", "cannot be told"),
    ],
)
def test_what_cannot_be_told_matters_only_where_it_decides(text: str, found: Told) -> None:
    assert told(text, amount=5000, order={"total": 9}) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("amount > 1000 or currency == 'BTC'", "holds"),
        ("amount < 1000 or currency == 'BTC'", "does not"),
        ("currency == 'BTC'", "does not"),
        ("currency != 'BTC'", "does not"),
        ("not currency == 'BTC'", "does not"),
        ("currency is None", "does not"),
        ("not currency", "does not"),
        ("region == 'EU' and currency == 'BTC'", "does not"),
        ("region == 'EU' or currency == 'BTC'", "cannot be told"),
        ("not (region == 'EU' and currency == 'BTC')", "cannot be told"),
    ],
)
def test_a_condition_is_not_about_a_call_as_far_as_it_names_what_the_tool_has_not(text: str, found: Told) -> None:
    assert told(text, "currency", amount=5000) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("id == '42'", 42),
        ("id == 42", "42"),
        ("id != '42'", 42),
        ("id in ['1', '42']", 42),
        ("id not in ['1', '42']", 42),
        ("id == 1", True),
        ("id == True", 1),
        ("id == 'true'", True),
        ("id is True", "true"),
        ("id", "false"),
        ("not id", "0"),
        ("id == '42'", ["42"]),
        ("id < 5", True),
        ("id == 'x'", object()),
        ("id", object()),
        ("id > 5", float("nan")),
        ("not id > 5", float("nan")),
        ("[id] == ['42']", 42),
    ],
)
def test_values_of_two_kinds_are_neither_the_same_nor_different(text: str, value: Any) -> None:
    assert told(text, id=value) == "cannot be told"


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("id == 42", 42.0, "holds"),
        ("id == None", "42", "does not"),
        ("id != None", 42, "holds"),
        ("id == 'EUR'", None, "does not"),
        ("id != 'EUR'", None, "holds"),
        ("id is None", 0, "does not"),
        ("id is None", None, "holds"),
        ("id is not True", None, "holds"),
        ("id in ['EUR', None]", "USD", "does not"),
        ("id == ['a', 'b']", ["a"], "does not"),
        ("id == ['a', 'b']", ["a", "b"], "holds"),
        ("id", "no", "holds"),
        ("id", "", "does not"),
        ("'a' in id", {"a": 1}, "holds"),
        ("id[0] == 'a'", ["a"], "holds"),
    ],
)
def test_what_is_of_one_kind_is_told_and_null_is_like_nothing_else(text: str, value: Any, found: Told) -> None:
    assert told(text, id=value) == found


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ({"a": [5, None, "x"]}, {"a": [5.0, None, "x"]}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        (2**53 + 1, float(2**53), False),
        ("x", object(), False),
    ],
)
def test_values_are_alike_where_no_condition_could_tell_them_apart(left: Any, right: Any, found: bool) -> None:
    assert alike(left, right) is found
    assert alike(right, left) is found


NAMES = ("a", "b", "c")
DOMAIN = (0, 1, 2)
_leaves = st.one_of(st.sampled_from(NAMES), st.sampled_from(["0", "1", "2"]))
_compared = st.one_of(
    st.tuples(_leaves, st.sampled_from(["==", "!=", "<", ">="]), _leaves).map(" ".join),
    st.tuples(_leaves, _leaves, _leaves).map(lambda three: f"{three[0]} in [{three[1]}, {three[2]}]"),
    st.tuples(_leaves, _leaves, _leaves).map(lambda three: f"{three[0]} < {three[1]} <= {three[2]}"),
)
CONDITIONS = st.recursive(
    _compared,
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda two: f"({two[0]}) {two[1]} ({two[2]})"),
    ),
    max_leaves=6,
)


@given(CONDITIONS, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(DOMAIN)), st.booleans())
def test_what_is_told_is_so_whatever_is_missing(text: str, arguments: dict[str, Any], foreign: bool) -> None:
    """What is missing is tried with every value: a condition that is told comes to the same with each of them."""
    missing = [name for name in NAMES if name not in arguments]
    found = told(text, *(missing if foreign else ()), **arguments)
    fillings = [dict(zip(missing, values, strict=True)) for values in itertools.product(DOMAIN, repeat=len(missing))]
    each = {bool(eval(text, {}, arguments | filling)) for filling in fillings}
    if not missing:
        assert found == ("holds" if each == {True} else "does not")
    elif found == "holds":
        assert each == {True}
    elif found == "does not" and not foreign:
        assert each == {False}


@given(CONDITIONS, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(DOMAIN)), st.sets(st.sampled_from(NAMES)))
def test_what_it_may_come_to_covers_what_it_comes_to(text: str, arguments: dict[str, Any], foreign: set[str]) -> None:
    may = Condition(text, "when").outcomes(foreign)
    found = told(text, *foreign, **arguments)
    if found != "does not":
        assert True in may
    elif may == {True}:
        raise AssertionError(f"{text} always holds, and did not for {arguments} without {foreign}")
