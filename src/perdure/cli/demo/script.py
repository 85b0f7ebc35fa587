"""What is said in the demo: the customer's two lines, and the model's part as a script.

The model's part is a pure function of the transcript (see `perdure.testing`), so any worker goes on with it.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from perdure.cli.demo.world import BLENDER_ORDER, CUSTOMER
from perdure.core.content import Entry, ToolEntry
from perdure.testing import Step, call, calls, last_result, replies, results, say
from perdure.testing.scripted import Planned

COMPLAINT: Final = (
    f"Hello, this is {CUSTOMER}. The blender that you delivered ten days ago has a crack all through its jar. "
    "What can you do?"
)
ADDRESS: Final = "7 Harbour Lane, Bristol"
ANSWER: Final = f"A replacement, please, to {ADDRESS}"

QUESTION: Final = (
    "I am sorry about your blender. It was delivered ten days ago, within the 14 days of our damage rule, so you may "
    "choose: a refund, for which I would need a photo of the damage first, or a replacement, which needs none. Which "
    "would you like, and to which address should a replacement go?"
)


def _close(transcript: tuple[Entry, ...]) -> Step:
    shipped = results(transcript)[-1]
    if shipped.status != "ok":
        return say(f"I could not ship the replacement: {shipped.text}")
    return say(
        f"Your new blender is on its way to {address_in(_answer(transcript))}. Tracking number: {shipped.text}. You "
        "need not send the cracked one back."
    )


def _answer(transcript: tuple[Entry, ...]) -> str:
    """Return what the customer answered to the question."""
    asked = {given.call_id for reply in replies(transcript) for given in reply.calls if given.tool == "ask_participant"}
    return next(e.result.text for e in transcript if isinstance(e, ToolEntry) and e.result.call_id in asked)


def address_in(answer: str) -> str:
    """Return what follows the first "to" of an answer such as "A replacement, please, to 7 Harbour Lane"."""
    found = re.search(r"\bto:?\s+(.+)", answer, re.IGNORECASE | re.DOTALL)
    return (found.group(1) if found else answer).strip().rstrip(".")


def conversation(names: Mapping[str, str] = MappingProxyType({})) -> tuple[Planned, ...]:
    """Return the model's part, one answer a turn. `names` are those of tools that are called otherwise here.

    The script has one outcome: whatever is answered, a replacement is shipped.
    """

    def asks(tool: str, arguments: dict[str, JsonValue]) -> Step:
        return call(names.get(tool, tool), arguments)

    def ship(transcript: tuple[Entry, ...]) -> Step:
        return asks("ship_replacement", {"order_id": BLENDER_ORDER, "address": address_in(last_result(transcript))})

    return (
        asks("list_open_orders", {"customer": CUSTOMER}),
        asks("get_order", {"order_id": BLENDER_ORDER}),
        calls(*(asks("look_up_policy", {"topic": topic}) for topic in ("damage", "refund", "replacement"))),
        call("ask_participant", {"question": QUESTION}),
        ship,
        _close,
    )


CONVERSATION: Final = conversation()
"""The model's part where the tools are Python functions."""
