"""A check that is a tool of the same server; its answer is structured, or JSON as text (`check_answers.py`)."""

import json

from mcp_types import CallToolResult, TextContent
from pydantic import JsonValue

from perdure.core.errors import ConfigurationError
from perdure.core.ports import Check
from perdure.tools.check_answers import ANSWERS, check_of


def read_check(tool: str, given: CallToolResult) -> Check:
    """Return what a check answered; raises `ConfigurationError` where that says nothing."""
    answer = _object(given)
    wrapped = answer.get("result") if answer is not None and "happened" not in answer else None
    if isinstance(wrapped, dict):  # a server that wraps every result in an object of its own
        answer = wrapped
    check = None if given.is_error else check_of(answer)
    if check is None:
        raise ConfigurationError(f"tool {tool!r}", f"as a check it must answer {ANSWERS}")
    return check


def _object(given: CallToolResult) -> dict[str, JsonValue] | None:
    found = given.structured_content
    if found is None and len(given.content) == 1 and isinstance(given.content[0], TextContent):
        try:
            found = json.loads(given.content[0].text)
        except ValueError:
            return None
    return found if isinstance(found, dict) else None
