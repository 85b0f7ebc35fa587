"""What a condition comes to for the arguments of a call: it holds, it does not, or that is open, and for what reason.

Open is what nobody can tell: an argument that was left out, a text beside a number. `42` and `"42"` are neither the
same nor different, since a tool may well make the same of both. Only null is plainly another than every other value.
Open in its own way is what names an argument that the tool does not have: that part of the condition is not about this
call.

So a truth is the set of what it may come to: True, False, or None for "not about this call". `and`, `or` and `not` work
on all that their parts may come to, whatever their order: `amount > 1000 or currency == "BTC"` holds for an amount of
5000 whether or not there is a currency.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Outcomes = frozenset[bool | None]

UNTOLD: Final[Outcomes] = frozenset({True, False})
"""It may be either."""

FOREIGN: Final[Outcomes] = frozenset({None})
"""It is not about this call."""

_ORDERED: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Lt: lambda a, b: bool(a < b),
    ast.LtE: lambda a, b: bool(a <= b),
    ast.Gt: lambda a, b: bool(a > b),
    ast.GtE: lambda a, b: bool(a >= b),
}

_FALSE_IN_WORDS: Final = frozenset({"false", "0"})
"""Texts that are true by themselves, and mean false to whoever reads them out of an address."""


@dataclass(frozen=True)
class Open:
    """A value or a truth that cannot be told: what it may come to, and why."""

    may: Outcomes
    why: str


def truth(value: Any) -> bool | Open:
    """Return whether a value counts as true."""
    if isinstance(value, Open):
        return value
    if isinstance(value, str) and value[:6].lower() in _FALSE_IN_WORDS:
        return Open(UNTOLD, f"whether {value!r} is true")
    return bool(value) if _kind(value) else Open(UNTOLD, "whether it is true")


def value_of(node: ast.AST, look: Callable[[str], Any]) -> Any:
    """Return what an expression comes to, which was checked by `conditions.py`. `look` gives an argument, or `Open`."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return look(name)
        case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as key)):
            return _within(value_of(inner, look), key)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _negated(truth(value_of(operand, look)))
        case ast.UnaryOp(operand=operand):
            return -value_of(operand, look)
        case ast.BoolOp(op=op, values=values):
            return _joined([truth(value_of(each, look)) for each in values], every=isinstance(op, ast.And))
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return [value_of(each, look) for each in elements]
        case ast.Compare(left=left, ops=ops, comparators=rights):
            values = [value_of(each, look) for each in (left, *rights)]
            return _joined([_compared(op, *values[i : i + 2]) for i, op in enumerate(ops)], every=True)
        case _:
            raise ValueError(f"{type(node).__name__} was not checked")


def _within(value: Any, key: str | int) -> Any:
    if isinstance(value, Open):
        return value
    inside: Any = value
    if isinstance(value, list | dict | str):
        try:
            return inside[key]
        except (TypeError, LookupError):
            pass
    return Open(UNTOLD, f"there is no {key!r} in {_kind(value) or 'it'}")


def _negated(given: bool | Open) -> bool | Open:
    if isinstance(given, Open):
        return Open(frozenset(None if each is None else not each for each in given.may), given.why)
    return not given


def _joined(truths: Iterable[bool | Open], *, every: bool) -> bool | Open:
    """Return whether all of them hold, or with `every=False` whether one does."""
    may: Outcomes = frozenset({every})
    opened: list[Open] = []
    for each in truths:
        if isinstance(each, Open):
            opened.append(each)
        elif each != every:
            return each  # decided, whatever the others come to
        else:
            continue
        may = frozenset(_pair(one, other, every) for one in may for other in opened[-1].may)
    if not opened:
        return every
    return Open(may, next((each.why for each in opened if each.may != FOREIGN), opened[0].why))


def _pair(one: bool | None, other: bool | None, every: bool) -> bool | None:
    if one == (not every) or other == (not every):
        return not every
    return None if one is None or other is None else every


def _compared(op: ast.cmpop, left: Any, right: Any) -> bool | Open:
    match op:
        case ast.In():
            return _is_in(left, right)
        case ast.NotIn():
            return _negated(_is_in(left, right))
        case ast.Eq():
            return _equal(left, right)
        case ast.NotEq():
            return _negated(_equal(left, right))
        case ast.Is():
            return _equal(left, right)
        case ast.IsNot():
            return _negated(_equal(left, right))
    if isinstance(left, Open) or isinstance(right, Open):
        return _beside(left, right)
    try:
        if _kind(left) == _kind(right) and not _is_no_number(left) and not _is_no_number(right):
            return _ORDERED[type(op)](left, right)
    except TypeError:
        pass
    return _across(left, right)


def _equal(left: Any, right: Any) -> bool | Open:
    if isinstance(left, Open) or isinstance(right, Open):
        return _beside(left, right)
    if left is None or right is None:
        return left is right
    kind = _kind(left)
    if not kind or kind != _kind(right) or _is_no_number(left) or _is_no_number(right):
        return _across(left, right)
    if isinstance(left, list):
        return len(left) == len(right) and _joined(map(_equal, left, right), every=True)
    if isinstance(left, dict):
        same = left.keys() == right.keys()
        return same and _joined((_equal(value, right[key]) for key, value in left.items()), every=True)
    return bool(left == right)


def _is_in(left: Any, right: Any) -> bool | Open:
    if isinstance(right, list):
        return _joined((_equal(left, each) for each in right), every=False)
    if isinstance(left, Open) or isinstance(right, Open):
        return _beside(left, right)
    if isinstance(left, str) and isinstance(right, str | Mapping):
        return left in right
    return _across(left, right)


def _beside(left: Any, right: Any) -> Open:
    """Return what comes of two values of which one is open: without the argument there is nothing to compare."""
    opened = [each for each in (left, right) if isinstance(each, Open)]
    for each in opened:
        if each.may == FOREIGN:
            return each
    foreign = FOREIGN if any(None in each.may for each in opened) else frozenset[bool | None]()
    return Open(UNTOLD | foreign, opened[0].why)


def _across(left: Any, right: Any) -> Open:
    return Open(UNTOLD, f"{_kind(left) or 'a value'} beside {_kind(right) or 'a value'}")


def alike(left: object, right: object) -> bool:
    """Whether no condition could tell two values apart; where they are nested too deep, False."""
    try:
        return _alike(left, right)
    except RecursionError:
        return False


def _alike(left: Any, right: Any) -> bool:
    kind = _kind(left)
    if not kind or kind != _kind(right):
        return False
    if kind == "an object":
        return left.keys() == right.keys() and all(_alike(value, right[key]) for key, value in left.items())
    if kind == "a list":
        return len(left) == len(right) and all(map(_alike, left, right))
    return bool(left == right)


def _is_no_number(value: Any) -> bool:
    return isinstance(value, float) and value - value != 0


Kind = Literal["null", "true or false", "a number", "a text", "a list", "an object", ""]


def _kind(value: Any) -> Kind:
    """Return what a value is; empty for one that is none of JSON's."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return ""
