"""What a function gets, as its rules see it."""

import enum
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, HttpUrl, RootModel, SecretStr, StringConstraints

from perdure import tool
from perdure.core.tool_calls import Reads
from perdure.core.tool_rules import ToolRules
from perdure.tools.meanings import UNTOLD, meaning
from perdure.tools.ruled import ruled


class Colour(enum.Enum):
    RED = "red"


class Line(BaseModel):
    price: Decimal = Decimal("9.5")
    note: str = Field(default="", exclude=True)
    count: int = Field(default=1, alias="number")


class Lines(RootModel[list[Line]]):
    pass


@dataclass
class Place:
    town: str


class Odd:
    pass


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (UUID("9F1C2C1E-0000-4000-8000-000000000001"), "9f1c2c1e-0000-4000-8000-000000000001"),
        (Decimal("150"), 150),
        (Decimal("0.5"), 0.5),
        (Decimal("1E+999999"), float("inf")),
        (Colour.RED, "red"),
        (date(2026, 1, 2), "2026-01-02"),
        (HttpUrl("HTTPS://X.example"), "https://x.example/"),
        (SecretStr("s"), "s"),
        ({Colour.RED: {1}}, {"red": [1]}),
        ({1: (True, None)}, {"1": [True, None]}),
        (Place("Bonn"), {"town": "Bonn"}),
        (Lines([Line(number=2)]), [{"price": 9.5, "note": "", "count": 2, "number": 2}]),
        (b"abc", "abc"),
    ],
)
def test_values_are_seen_as_numbers_texts_lists_and_objects(value: Any, found: Any) -> None:
    seen = meaning(value)
    assert (seen, type(seen)) == (found, type(found))


def test_what_has_no_form_in_json_cannot_be_told() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert meaning(Odd()) is UNTOLD
    assert meaning(b"\xff") is UNTOLD
    assert meaning(endless) is UNTOLD
    assert meaning(Decimal("NaN")) != meaning(Decimal("NaN"))


@tool(effect="once")
def act(
    account: UUID,
    action: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)],
    amount: Annotated[Decimal, AfterValidator(abs)] = Decimal(5),
    line: Line | None = None,
) -> str:
    """Act."""
    return f"{account} {action} {amount} {line}"


def test_a_function_says_what_it_gets() -> None:
    given: dict[str, Any] = {"account": "9F1C2C1E-0000-4000-8000-000000000001", "action": "DELETE ", "line": {}}
    read = {
        "account": "9f1c2c1e-0000-4000-8000-000000000001",
        "action": "delete",
        "line": {"price": 9.5, "note": "", "count": 1, "number": 1},
    }
    assert act.as_read(given) == read
    assert act.as_read(given | {"amount": -7}) == read | {"amount": 7}
    over = ruled(act, ToolRules(timeout_s=10))
    assert isinstance(over, Reads)
    assert over.as_read(given) == read
    assert json.dumps(over.as_read(given))


def test_what_a_validator_says_once_only_cannot_be_told() -> None:
    seen: list[object] = []

    def once(value: object) -> object:
        seen.append(value)
        if len(seen) > 1:
            raise ValueError("again")
        return value

    @tool
    def odd(text: Annotated[str, BeforeValidator(once)]) -> str:
        """Say."""
        return text

    assert odd.problem({"text": "a"}) is None
    assert odd.as_read({"text": "a"}) == {"text": UNTOLD}
