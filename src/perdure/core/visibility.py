r"""What a person is shown, with nothing in it that they would not see.

Whoever approves a call must see what stands there. A character without a width makes two accounts look like one, one
that turns a line around makes an amount look like another, and a run of them carries a whole text that only a model
reads. So what shows nothing is written as its escape, `\u200b`. What is ordinary in some script stays as it is: letters
and marks of all of them, a joiner where it changes how a word is drawn, and what belongs to an emoji.

The table is written down, and is not that of the Python which runs it: a question is made in the workflow, and must
come out the same whenever its history is replayed (P11). It holds what Unicode says may be ignored, with the places
that it keeps for more of it; controls, and formats that show nothing; fillers and spaces that look like nothing or
almost; and what has a meaning in private only.
"""

import re
from typing import Final

_UNSEEN: Final = (
    "\x00-\x1f\x7f-\x9f"  # controls
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # hyphens, joiners and fillers
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # no width, ends of lines, and what turns a line around
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors, tags
    "\ufff0-\ufffc\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"  # formats
    "\u2000-\u200a\u205f\u2800\U00016fe4"  # blanks
    "\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"  # private, and no characters
)

_JOINING: Final = (
    "\u0626\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a\u067a-\u0687\u069a-\u06bf\u06c1\u06cc\u06d0"
)
"""Arabic letters that join the next one, so that a non-joiner after them is seen."""

_VIRAMAS: Final = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
"""After these a joiner says how the consonants of an Indic word are drawn together."""

_EMOJI: Final = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)

_FOUND: Final = re.compile(
    f"(?P<ordinary>(?<=[{_JOINING}])\u200c(?=[\u0620-\u064a\u0671-\u06d3])"
    rf"|(?<=[{_VIRAMAS}])[\u200c\u200d](?=[\u0900-\u0dff])(?!\d)|(?<=\u09b0)\u200d(?=\u09cd)"
    f"|(?<=[{_EMOJI}])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?<=[\ufe0f{_EMOJI}])\u200d(?=[{_EMOJI}]))"
    f"|[{_UNSEEN}]"
)


def visible(shown: str) -> str:
    """Write what would not be seen, or would turn the order of what is seen around, as its escape."""
    return _FOUND.sub(_escaped, shown)


def _escaped(found: re.Match[str]) -> str:
    place = f"{ord(found[0]):04x}"
    return found["ordinary"] or (f"\\u{place}" if len(place) == len("0000") else f"\\U{place:0>8}")
