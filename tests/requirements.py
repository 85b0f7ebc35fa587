"""What must be true, and the tests that show it: one row per promise and rule, checked both ways.

`tests/test_requirements.py` sees that every named test exists, that every row has one, and that every test named
after a number (`test_p3_…`, `test_r9_…`) stands in that number's row.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Requirement:
    """A promise (P) or rule (R). `tests` are `path::function`; `missing` says what is not proved yet, and why."""

    text: str
    tests: tuple[str, ...] = field(default=())
    missing: str = ""


REQUIREMENTS: dict[str, Requirement] = {}
