"""What a docstring tells a model: its first paragraph, and the Google-style `Args:` section by parameter."""

import inspect
import re
from collections.abc import Iterator

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_PARAMETER = re.compile(r"^(?P<name>\w+)\s*(\([^)]*\))?:\s*(?P<text>.*)$")


def summary(docstring: str | None) -> str:
    """Return the first paragraph on one line, or an empty text."""
    if not docstring:
        return ""
    return " ".join(inspect.cleandoc(docstring).split("\n\n", 1)[0].split())


def parameter_texts(docstring: str | None) -> dict[str, str]:
    """Return the descriptions of the `Args:` section by parameter name; a description may span lines."""
    texts: dict[str, str] = {}
    name = ""
    for depth, line in _section_lines(docstring or ""):
        start = _PARAMETER.match(line) if depth == 0 else None
        if start is not None:
            name = start["name"]
            texts[name] = start["text"]
        elif name:
            texts[name] = f"{texts[name]} {line}".strip()
    return texts


def _section_lines(docstring: str) -> Iterator[tuple[int, str]]:
    """Yield the section's lines with their indentation relative to the section's first line."""
    base: int | None = None
    inside = False
    for line in inspect.cleandoc(docstring).splitlines():
        if not inside:
            inside = _SECTION.match(line) is not None
            continue
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            return
        base = indent if base is None else base
        yield max(0, indent - base), line.strip()
