"""Conditions over the arguments of a call: `amount > 100 and currency not in ["EUR", "USD"]`.

A small language with Python's own grammar, with its meaning wherever values of one kind are compared, and with nothing
in it that could do anything: comparisons, membership, `and`, `or`, `not`, constants, lists of constants, and names of
arguments, which may be looked into with a constant (`order["total"]`). It is parsed once, when the agent is made,
against a list of what is allowed; everything else is refused there. It costs no more than its length, calls nothing,
and has no arithmetic that could grow.

What it comes to is in `truths.py`. A condition that cannot be told (an argument that is not there, a text compared
with a number) says so with `CannotTell`. What follows from that is not decided here, but it is never "as if it did not
hold".
"""

import ast
from collections.abc import Collection, Mapping
from typing import Final

from perdure.core import asking_limits
from perdure.core.errors import ConfigurationError, PerdureError
from perdure.core.truths import FOREIGN, UNTOLD, Open, Outcomes, truth, value_of

_LEAVES: Final = (ast.Name, ast.Constant)
_IDENTITY: Final = (ast.Is, ast.IsNot)
"""`is` asks for None, True or False; of other values it would ask where they are kept."""


class CannotTell(PerdureError):
    """A condition could not be evaluated for these arguments."""

    code = "cannot_tell"


class Condition:
    """One condition, parsed.

    Args:
        text: As it is written.
        field: What an error names.

    Raises:
        ConfigurationError: It is no condition of this language; names what is not allowed and what is.
    """

    def __init__(self, text: str, field: str) -> None:
        self.text = text.strip()
        self._field = field
        if len(self.text) > asking_limits.CONDITION_CHARS_MAX:
            raise self._refused(f"has {len(self.text)} characters, at most {asking_limits.CONDITION_CHARS_MAX}")
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            raise self._refused(f"is no expression{where}") from error
        nodes = list(ast.walk(self._tree))
        if len(nodes) > asking_limits.CONDITION_NODES_MAX:
            raise self._refused("is too long to be checked by reading it; split it into several rules")
        self._check(self._tree)
        self.names = frozenset(node.id for node in nodes if isinstance(node, ast.Name))
        """The arguments that it looks at."""

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Raise `ConfigurationError` for a name that is none of these arguments."""
        for name in sorted(self.names - set(known)):
            raise self._refused(f"{name!r} is no argument of it; its arguments: {', '.join(sorted(known)) or 'none'}")

    def holds(self, arguments: Mapping[str, object], foreign: Collection[str] = ()) -> bool:
        """Return whether it holds.

        Args:
            arguments: Those of the call.
            foreign: Names that are none of the tool's arguments. What cannot be told but for them does not hold: the
                condition is not about this call.

        Raises:
            CannotTell: That cannot be said.
        """
        found = self._truth(arguments, foreign)
        if isinstance(found, bool):
            return found
        if True in found.may:
            raise CannotTell(f"{self.text!r} cannot be told: {found.why}")
        return False

    def outcomes(self, foreign: Collection[str] = ()) -> Outcomes:
        """Return what it may come to, whatever the arguments are: True, False, or None for "not about the call"."""
        found = self._truth({}, foreign)
        return frozenset({found}) if isinstance(found, bool) else found.may

    def _truth(self, arguments: Mapping[str, object], foreign: Collection[str]) -> bool | Open:
        def look(name: str) -> object:
            if name in foreign:
                return Open(FOREIGN, f"the tool has no argument {name!r}")
            return arguments[name] if name in arguments else Open(UNTOLD, f"there is no argument {name!r}")

        try:
            return truth(value_of(self._tree, look))
        except RecursionError:
            return Open(UNTOLD, "the arguments are nested too deep")

    def _check(self, node: ast.AST) -> None:
        """Refuse what is not allowed, here and beneath."""
        if isinstance(node, _LEAVES) or _is_negative(node):
            self._check_leaf(node)
            return
        beneath: list[ast.expr]
        match node:
            case ast.BoolOp(values=beneath) | ast.List(elts=beneath) | ast.Tuple(elts=beneath) | ast.Set(elts=beneath):
                pass
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                beneath = [operand]
            case ast.Subscript(value=value, slice=ast.Constant(value=str() | int())):
                beneath = [value]
            case ast.Compare(left=left, ops=ops, comparators=rights):
                beneath = [left, *rights]
                if any(
                    isinstance(op, _IDENTITY) and not _is_single(each) for op, each in zip(ops, rights, strict=True)
                ):
                    raise self._refused("`is` is for None, True and False; write == for values")
            case _:
                raise self._not_allowed(node)
        for each in beneath:
            self._check(each)

    def _check_leaf(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and not isinstance(node.value, bool | int | float | str | None):
            raise self._not_allowed(node)

    def _not_allowed(self, node: ast.AST) -> ConfigurationError:
        return self._refused(
            f"{ast.unparse(node)!r} is not allowed; use comparisons, in, and, or, not, constants, lists of constants "
            "and the names of arguments"
        )

    def _refused(self, problem: str) -> ConfigurationError:
        return ConfigurationError(self._field, f"{self.text[:80]!r}: {problem}")


def _is_single(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _is_negative(node: ast.AST) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return type(value) in {int, float}
        case _:
            return False
