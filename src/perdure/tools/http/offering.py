"""Which operations of a document are offered: those that can be, of those that fit the operator's patterns.

A document is often somebody else's, and has hundreds of operations. One that cannot be offered is left out, and said in
the log; it fails the source only where the operator named it. A name or pattern that fits nothing is refused: what it
says would hold for nothing, unnoticed.
"""

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.core import http_limits
from perdure.core.errors import ConfigurationError
from perdure.core.tool_rules import ToolRules, is_offered, is_pattern
from perdure.tools.http.document import Document
from perdure.tools.http.operations import Operation, Unusable, operations_of
from perdure.tools.json_arguments import JsonArguments

_log = logging.getLogger(__name__)


class Offer(NamedTuple):
    """A document's operations by their names, and those that are offered. A check need not be among these."""

    operations: Mapping[str, Operation]
    offered: tuple[Operation, ...]


def offer_of(
    field: str, document: Document, headers: frozenset[str], tools: Sequence[str], rules: Mapping[str, ToolRules]
) -> Offer:
    """Return what is offered; `headers` are the names that the operator fills in, in small letters.

    Raises `ConfigurationError` where a name or pattern fits nothing, or too many operations fit.
    """
    found: dict[str, Operation] = {}
    unusable: dict[str, str] = {}
    for each in operations_of(f"{field}, document", document, headers):
        if isinstance(each, Unusable):
            unusable[each.name] = each.reason
        elif each.name in found:
            raise ConfigurationError(
                f"{field}, document", f"has two operations named {each.name!r}; give one another operationId"
            )
        else:
            found[each.name] = each
    chosen = [each for each in found.values() if is_offered(each.name, tools)]
    if len(chosen) > http_limits.TOOLS_PER_SOURCE_MAX:
        raise ConfigurationError(
            f"{field}, tools",
            f"{len(chosen)} operations fit, at most {http_limits.TOOLS_PER_SOURCE_MAX} are offered; name those",
        )
    for each in chosen:
        try:
            JsonArguments(each.name, each.schema)
        except ConfigurationError as error:
            unusable[each.name] = f"{each.method.upper()} {each.path} has a schema that {error.problem}"
            del found[each.name]
    for at, named in (("tools", tuple(tools)), ("rules", tuple(rules))):
        for pattern in named:
            _refuse(f"{field}, {at}", pattern, found, unusable)
    for reason in _left_out(tools, unusable):
        _log.warning("%s: not offered: %s", field, reason)
    return Offer(found, tuple(each for each in chosen if each.name in found))


def _refuse(field: str, pattern: str, found: Mapping[str, Operation], unusable: Mapping[str, str]) -> None:
    if pattern == "*" or any(is_offered(name, [pattern]) for name in found):
        return
    if pattern in unusable:
        raise ConfigurationError(field, f"{pattern!r} cannot be offered: {unusable[pattern]}; leave it out")
    near = difflib.get_close_matches(pattern, found, n=3) or sorted(found)[:5]
    what = "no operation fits" if is_pattern(pattern) else "there is no operation"
    raise ConfigurationError(field, f"{what} {pattern!r}; there are {', '.join(near) or 'none'}")


def _left_out(tools: Sequence[str], unusable: Mapping[str, str]) -> Iterator[str]:
    return (reason for name, reason in unusable.items() if is_offered(name, tools))
