"""A check that is a tool of the same server: how it is asked what became of a key, and how its answer is read.

It is called with the key as its one argument, and answers with an object, structured or as JSON text:

    {"happened": true, "result": …}      it did; `result` is what the call would have returned
    {"happened": false, "final": true}   it did not and never will: the server refuses this key from now on
    {"happened": false}                  it did not so far

Anything else says nothing, and nothing is guessed from it.
"""

import json

from mcp_types import CallToolResult, TextContent
from pydantic import JsonValue

from perdure.core.errors import ConfigurationError
from perdure.core.ports import Check


def read_check(tool: str, given: CallToolResult) -> Check:
    """Return what a check answered; raises `ConfigurationError` where that says nothing."""
    answer = _object(given)
    wrapped = answer.get("result") if answer is not None and "happened" not in answer else None
    if isinstance(wrapped, dict):  # a server that wraps every result in an object of its own
        answer = wrapped
    happened = None if answer is None else answer.get("happened")
    if given.is_error or answer is None or not isinstance(happened, bool):
        raise ConfigurationError(
            f"tool {tool!r}",
            'as a check it must answer {"happened": true or false, "result": …, "final": true or false}',
        )
    if happened:
        return Check.happened(answer.get("result"))
    return Check.never() if answer.get("final") is True else Check.not_yet()


def _object(given: CallToolResult) -> dict[str, JsonValue] | None:
    found = given.structured_content
    if found is None and len(given.content) == 1 and isinstance(given.content[0], TextContent):
        try:
            found = json.loads(given.content[0].text)
        except ValueError:
            return None
    return found if isinstance(found, dict) else None
