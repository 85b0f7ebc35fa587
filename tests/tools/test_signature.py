"""A function's signature as a schema, and arguments held to it (B13)."""

import dataclasses
import datetime
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, JsonValue
from typing_extensions import TypedDict

from perdure.core import limits
from perdure.core.errors import ConfigurationError
from perdure.core.ports import Call
from perdure.tools import tool
from perdure.tools.documentation import parameter_texts, summary

CALL = Call(idempotency_key="t/1/0", attempt=1, task_id="t", tool="x")


class Address(BaseModel):
    street: str
    floor: int = 0


@dataclasses.dataclass
class Size:
    width: float


class Speed(enum.Enum):
    SLOW = "slow"


def offered(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of one parameter of that annotation."""

    def probe(value: Any = default) -> None: ...

    def required(value: Any) -> None: ...

    function = required if default is ... else probe
    function.__annotations__ = {"value": annotation}
    return tool(function).schema.parameters


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (datetime.date, {"type": "string", "format": "date"}),
        (
            Annotated[int, Field(ge=1, description="how many")],
            {"type": "integer", "minimum": 1, "description": "how many"},
        ),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Any, {}),
    ],
)
def test_a_parameter_is_offered_by_its_json_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert offered(annotation) == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("annotation", [Address, Size, Speed])
def test_models_dataclasses_and_enums_are_referred_to(annotation: Any) -> None:
    schema = offered(annotation)
    assert schema["properties"]["value"]["$ref"] in {f"#/$defs/{name}" for name in schema["$defs"]}


def test_a_default_is_shown_and_makes_the_parameter_optional() -> None:
    assert offered(int, 7)["properties"]["value"] == {"type": "integer", "default": 7}
    assert "required" not in offered(int, 7)


def test_a_default_without_a_json_form_is_left_out() -> None:
    assert "default" not in offered(Any, object())["properties"]["value"]


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    @tool
    def ping() -> str:
        return "pong"

    assert ping.schema.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert ping.problem({}) is None


def test_the_call_is_not_offered() -> None:
    @tool
    def refund(order_id: str, call: Call) -> str:
        return order_id

    properties: Any = refund.schema.parameters["properties"]
    assert list(properties) == ["order_id"]
    problem = refund.problem({"order_id": "1", "call": "x"})
    assert problem is not None
    assert "call: unknown" in problem


def test_descriptions_come_from_the_docstring_unless_annotated() -> None:
    @tool
    def refund(order_id: str, amount: Annotated[float, Field(description="In euros.")], note: str = "") -> str:
        """Pay an order back,
        in whole or in part.

        Only within 14 days.

        Args:
            order_id (str): The order,
                as printed on the receipt.
            amount: ignored, the annotation wins.
            note: For: the books.

        Returns:
            amount: never mistaken for a parameter.
        """
        return order_id

    properties: Any = refund.schema.parameters["properties"]
    assert refund.schema.description == "Pay an order back, in whole or in part."
    assert properties["order_id"]["description"] == "The order, as printed on the receipt."
    assert properties["amount"]["description"] == "In euros."
    assert properties["note"]["description"] == "For: the books."


@pytest.mark.parametrize("docstring", [None, "", "One line.", "Args:", "Args:\n  no colon here"])
def test_a_docstring_without_parameters_gives_none(docstring: str | None) -> None:
    assert parameter_texts(docstring) == {}
    assert summary(docstring) in {"", "One line.", "Args:", "Args: no colon here"}


# --- what cannot be offered -------------------------------------------------------------------------------------


class Opaque:
    pass


def unannotated(value) -> None: ...  # type: ignore[no-untyped-def]
def many(*values: int) -> None: ...
def keywords(**values: int) -> None: ...
def positional(value: int, /) -> None: ...
def opaque(value: Opaque) -> None: ...
def callback(value: Callable[[int], int]) -> None: ...
def maybe_call(value: Call | None) -> None: ...
def aliased(value: Annotated[int, Field(alias="other")]) -> None: ...
def wörter(value: int) -> None: ...  # noqa: PLC2401
def foreign(größe: int) -> None: ...  # noqa: PLC2401
def ask_participant(question: str) -> None: ...
def late(value: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "named", "fix"),
    [
        (unannotated, "tool 'unannotated', parameter 'value'", "annotate it"),
        (many, "tool 'many', parameter 'values'", "declare each parameter"),
        (keywords, "tool 'keywords', parameter 'values'", "declare each parameter"),
        (positional, "tool 'positional', parameter 'value'", "remove the '/'"),
        (opaque, "tool 'opaque', parameter 'value'", "use a JSON type, a dataclass or a pydantic model"),
        (callback, "tool 'callback', parameter 'value'", "use a JSON type"),
        (maybe_call, "tool 'maybe_call', parameter 'value'", "annotate it as plain `Call`"),
        (aliased, "tool 'aliased', parameter 'value'", "remove the alias"),
        (wörter, "tool 'wörter', name", "use 1 to 64 of"),
        (foreign, "tool 'foreign', parameter 'größe'", "use up to 64 of"),
        (ask_participant, "tool 'ask_participant', name", "choose another with name="),
        (late, "tool 'late'", "import or define its type at module level"),
        (generator, "tool 'generator'", "return the whole result"),
        (Opaque, "tool 'Opaque'", "wrap it in one"),
        (Opaque(), "tool <", "decorate a function"),
    ],
)
def test_what_cannot_be_offered_is_refused_by_name_with_the_fix(
    function: Callable[..., object], named: str, fix: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tool(function)
    assert caught.value.field.startswith(named)
    assert fix in caught.value.problem


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "refund\n"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name: providers refuse this name"):
        tool(name=name)(opaque)


# --- what is accepted -------------------------------------------------------------------------------------------


class Line(TypedDict):
    sku: str
    count: int


@tool
def order(
    amount: int,
    price: float = 1.0,
    when: datetime.date | None = None,
    lines: list[Line] | None = None,
    address: Address | None = None,
    tags: frozenset[str] = frozenset(),
    exact: Decimal | None = None,
    speed: Speed = Speed.SLOW,
    pair: tuple[int, str] = (0, ""),
    size: Size | None = None,
    gift: bool = False,
) -> str:
    return f"{amount!r} {price!r} {when!r} {sorted(tags)!r} {exact!r} {pair!r} {size!r} {address!r}"


@pytest.mark.parametrize(
    "arguments",
    [
        {"amount": 5},
        {"amount": 5.0},
        {"amount": 5, "price": 2},
        {"amount": 5, "when": "2024-02-29"},
        {"amount": 5, "lines": [{"sku": "a", "count": 1.0}]},
        {"amount": 5, "address": {"street": "x"}},
        {"amount": 5, "tags": ["a", "b"], "exact": "1.10", "speed": "slow", "pair": [1, "x"], "size": {"width": 1}},
    ],
)
def test_the_json_form_of_each_type_is_accepted(arguments: dict[str, JsonValue]) -> None:
    assert order.problem(arguments) is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"amount": "five"}, 'amount: Input should be a valid integer, got "five"'),
        ({"amount": "5"}, 'amount: Input should be a valid integer, got "5"'),
        ({"amount": 5.5}, "amount: Input should be a valid integer, got 5.5"),
        ({"amount": True}, "amount: Input should be a valid integer, got true"),
        ({"amount": None}, "amount: Input should be a valid integer, got null"),
        ({"amount": 1, "gift": "yes"}, 'gift: Input should be a valid boolean, got "yes"'),
        ({"amount": 1, "price": "1.5"}, 'price: Input should be a valid number, got "1.5"'),
        ({"amount": 1, "lines": [{"sku": "a", "count": "x"}]}, "lines.0.count: Input should be a valid integer"),
        ({"amount": 1, "address": {}}, "address.street: missing"),
        ({"amount": 1, "when": "yesterday"}, "when: "),
        ({"amount": 1, "speed": "fast"}, "speed: "),
        ({}, "amount: missing, it is required"),
        ({"amount": 1, "ammount": 2}, "ammount: unknown, did you mean amount?"),
        ({"amount": 1, "zzz": 2}, "zzz: unknown"),
        ({"amount": 1, "z\ud800": 2}, "z\ufffd: unknown"),
        ({"amount": "\x00\ud800"}, "amount: Input should be a valid integer"),
    ],
)
def test_what_breaks_the_schema_is_explained(arguments: dict[str, JsonValue], told: str) -> None:
    problem = order.problem(arguments)
    assert problem is not None
    assert problem.startswith("Not begun: the arguments of order do not fit. ")
    assert told in problem
    assert "Its parameters: amount, price, when" in problem
    problem.encode()


def test_all_reasons_are_told_at_once() -> None:
    problem = order.problem({"price": "x", "colour": "red"})
    assert problem is not None
    assert all(name in problem for name in ("amount: missing", "price: ", "colour: unknown"))


def test_an_explanation_is_bounded() -> None:
    problem = order.problem({"amount": "ä" * 100_000, **{f"unknown_{n}": n for n in range(1000)}})
    assert problem is not None
    assert len(problem.encode()) <= limits.PROBLEM_BYTES_MAX


async def test_a_function_gets_the_types_that_it_declares() -> None:
    result = await order.invoke(
        {
            "amount": 5.0,
            "price": 2,
            "when": "2024-02-29",
            "tags": ["b", "a"],
            "exact": "1.10",
            "pair": [1, "x"],
            "size": {"width": 1},
            "address": {"street": "s"},
        },
        CALL,
    )
    assert result == (
        "5 2.0 datetime.date(2024, 2, 29) ['a', 'b'] Decimal('1.10') (1, 'x') Size(width=1.0) "
        "Address(street='s', floor=0)"
    )


async def test_names_that_clash_with_pydantic_or_python_work() -> None:
    @tool
    async def odd(json: int, model_config: int, schema: int, _hidden: int, self: int = 0) -> int:
        return json + model_config + schema + _hidden + self

    assert await odd.invoke({"json": 1, "model_config": 2, "schema": 3, "_hidden": 4, "self": 5}, CALL) == 15
