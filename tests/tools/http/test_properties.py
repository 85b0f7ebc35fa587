"""What holds for any argument and any status: a request stays in its place, and no doubt becomes a second effect."""

import itertools
import json
from typing import Any, get_args
from urllib.parse import unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from perdure.core.agent import EffectClass
from perdure.core.digests import safe_text
from perdure.tools.http.operations import Parameter
from perdure.tools.http.outcomes import meaning
from perdure.tools.http.requests import Unwritable, written
from perdure.tools.json_arguments import JsonArguments
from tests.tools.http.running import body, parameter
from tests.tools.http.test_operations import BASE, one

TEXTS = st.text(max_size=40).map(safe_text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
PLACED = one(
    "post",
    "/a/{p}/z",
    parameters=[parameter("p", "path", schema={}), parameter("q", schema={}), parameter("h", "header", schema={})],
    requestBody=body(b={}),
)


@given(value=JSON, query=JSON, header=JSON, inner=JSON)
def test_a_request_stays_in_its_place_whatever_is_given(value: Any, query: Any, header: Any, inner: Any) -> None:
    try:
        request = written(PLACED, BASE, {"p": value, "q": query, "h": header, "b": inner})
    except Unwritable:
        return
    assert request.url.isascii()
    assert request.url.isprintable()
    assert " " not in request.url
    parts = urlsplit(request.url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "shop.example", "")
    before, first, middle, last = parts.path.removeprefix("/v1").split("/")
    assert (before, first, last) == ("", "a", "z")
    assert unquote(middle) not in {"", ".", ".."} or middle != unquote(middle)
    assert middle not in {"", ".", ".."}
    assert "\r" not in request.headers["h"]
    assert "\n" not in request.headers["h"]
    assert json.loads(request.body) == {"b": inner}


@given(value=TEXTS)
def test_a_text_comes_back_as_it_was(value: str) -> None:
    made = one(parameters=[parameter("q")])
    assert made.parameters == (Parameter("q", "q", "query", "form", explode=True),)
    query = urlsplit(written(made, BASE, {"q": value}).url).query
    assert unquote(query.removeprefix("q=")) == value


@given(arguments=st.dictionaries(TEXTS, JSON, max_size=5))
def test_any_arguments_are_judged_and_none_break_the_judge(arguments: dict[str, Any]) -> None:
    problem = JsonArguments("shop.op", PLACED.schema).problem(arguments)
    fits = set(arguments) <= {"p", "q", "h", "b"} and "p" in arguments
    assert (problem is None) == fits


def test_p3_no_answer_lets_a_call_that_may_have_happened_be_made_again() -> None:
    for status, attempt, text in itertools.product(range(100, 600), (1, 2), (b"", b"in progress")):
        said = {effect: meaning(status, effect, "POST", attempt, text) for effect in get_args(EffectClass)}
        assert said["once"] != "again", status
        assert "in_doubt" not in {said["read"], said["idempotent"]}, status
        if said["once"] == "done":
            assert said["idempotent"] == "done", status
        if said["once"] == "refused":
            assert said["idempotent"] in {"refused", "again"}, status
