"""The shop's reading tools."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from tests.retail.books import Books, Refused
from tests.retail.data import Json

EXPRESSION_CHARS_MAX = 200

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def find_user_id_by_name_zip(books: Books, first_name: str, last_name: str, zip: str) -> str:
    """Find a customer by name, in any case, and postal code."""
    wanted = (first_name.casefold(), last_name.casefold(), zip)
    for user_id, user in books.every("users"):
        name = user["name"]
        if (name["first_name"].casefold(), name["last_name"].casefold(), user["address"]["zip"]) == wanted:
            return user_id
    raise Refused(f"There is no customer {first_name} {last_name} in {zip}.")


def find_user_id_by_email(books: Books, email: str) -> str:
    """Find a customer by e-mail address, in any case."""
    for user_id, user in books.every("users"):
        if user["email"].casefold() == email.casefold():
            return user_id
    raise Refused(f"There is no customer with the address {email}.")


def get_user_details(books: Books, user_id: str) -> Json:
    """Return a customer."""
    return books.user(user_id)


def get_order_details(books: Books, order_id: str) -> Json:
    """Return an order."""
    return books.order(order_id)


def get_product_details(books: Books, product_id: str) -> Json:
    """Return a product with its variants."""
    return books.product(product_id)


def list_all_product_types(books: Books) -> Json:
    """Return the product id of each product's name, by name."""
    return dict(sorted((p["name"], row_id) for row_id, p in books.every("products")))


def calculate(books: Books, expression: str) -> str:
    """Work out sums, differences, products and quotients of numbers, rounded to cents."""
    del books
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise Refused(f"An expression may have {EXPRESSION_CHARS_MAX} characters.")
    try:
        return str(round(_value(ast.parse(expression.strip(), mode="eval").body), 2))
    except (SyntaxError, ValueError):
        raise Refused(f"{expression!r} is not a calculation with +, -, *, / and brackets.") from None
    except (ZeroDivisionError, OverflowError):
        raise Refused(f"{expression!r} has no result.") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_value(left), _value(right)))
        case _:
            raise ValueError(ast.dump(node))
