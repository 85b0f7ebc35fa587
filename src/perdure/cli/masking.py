"""Keys and tokens in a log are masked, whoever wrote them there: our own code shows none, but a library may."""

import logging
import re
from typing import Final

SECRETS: Final = re.compile(
    r"(perdure_[0-9a-fA-F]{12}_)[0-9a-fA-F]+"  # our keys: the id may be read
    r"|(eyJ[\w-]{8,}\.)[\w-]+\.[\w-]*"  # a token: its header may
    r"|((?i:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|(://[^/\s:@]*:)[^@\s/]+(?=@)"  # a password in a URL
)


class Masking(logging.Formatter):
    """Formats as it is told, exceptions too, and masks what opens doors."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, masked."""
        return masked(super().format(record))


def masked(text: str) -> str:
    """Return the text with every secret in it replaced by `***`."""
    return SECRETS.sub(lambda found: "".join(part or "" for part in found.groups()) + "***", text)


def mask_logs() -> None:
    """Mask what the handlers of the root logger write from now on."""
    for handler in logging.getLogger().handlers:
        form = handler.formatter
        handler.setFormatter(Masking(None if form is None else form._fmt))  # noqa: SLF001 - there is no other way to it
