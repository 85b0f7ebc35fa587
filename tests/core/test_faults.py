"""Fault points: the code reaches what the list names, and the list names what the code reaches."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.core import faults
from perdure.core.errors import ConfigurationError
from perdure.core.faults import POINTS, Fault, read_faults

SOURCE = Path(__file__).parents[2] / "src" / "perdure"
WRITES = ("intake", "emit_event", "persist")


def reached(source: str) -> Iterator[str]:
    """Yield the points that a file reaches; a name that is put together stands for each of its values."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in POINTS:
            yield str(node.value)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
            if re.fullmatch(r"\*\.(before|after)", text):
                yield from (text.replace("*", name) for name in WRITES)


def test_the_code_reaches_every_point_and_no_other() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.name != "faults.py" and "cli" not in path.parts]
    assert {point for path in files for point in reached(path.read_text())} == set(POINTS)
    called = re.compile(r"""reach(?:\(|, )"([^"*{]+)\"""")
    assert {point for path in files for point in called.findall(path.read_text())} <= set(POINTS)


def test_nothing_happens_without_a_hook() -> None:
    faults.reach("tool.begun", "refund")


def test_a_hook_is_told_until_it_is_removed() -> None:
    told: list[tuple[str, tuple[str, ...]]] = []

    def hook(point: str, concerns: tuple[str, ...]) -> None:
        told.append((point, concerns))

    faults.install(hook)
    try:
        faults.reach("tool.begun", "refund", "t-1")
    finally:
        faults.remove(hook)
        faults.remove(hook)
    faults.reach("tool.begun", "refund", "t-1")
    assert told == [("tool.begun", ("refund", "t-1"))]


@pytest.mark.parametrize("text", ["tool.begun", "tool.begun:refund", "tool.begun@3", "model.inside:t-1@2"])
def test_a_fault_is_read_as_it_is_written(text: str) -> None:
    assert [str(fault) for fault in read_faults(f" {text} ,")] == [text]


def test_several_faults_are_read_in_order() -> None:
    assert read_faults("tool.begun:refund,model.inside@2") == (
        Fault("tool.begun", "refund"),
        Fault("model.inside", nth=2),
    )
    assert read_faults("") == ()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("tool.begin", "there is no point 'tool.begin'; the points: tool.before_begun, "),
        ("tool.begun@0", "'tool.begun@0' is no fault; write point"),
        ("tool.begun:", "is no fault"),
        ("tool.begun@1@2", "is no fault"),
    ],
)
def test_what_is_no_fault_is_refused_with_the_fix(text: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=f"PERDURE_FAULT: .*{re.escape(match)}"):
        read_faults(text)


def test_a_fault_counts_what_it_concerns_only() -> None:
    assert Fault("tool.begun").matches("tool.begun", ("refund", "t-1"))
    assert Fault("tool.begun", "refund").matches("tool.begun", ("refund", "t-1"))
    assert Fault("tool.begun", "t-1").matches("tool.begun", ("refund", "t-1"))
    assert not Fault("tool.begun", "notify").matches("tool.begun", ("refund", "t-1"))
    assert not Fault("tool.begun").matches("tool.done", ("refund", "t-1"))
