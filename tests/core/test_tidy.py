"""The source keeps its own rules: a pure core, layers, explained limits, no asserts, small files.

Every rule is a function over source text, and has a negative control: a test that it can fail.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "perdure"
CORE = sorted((SOURCE / "core").rglob("*.py"))
ALL = sorted(SOURCE.rglob("*.py"))
LINES_MAX = 400

PURE = {"ast", "typing", "dataclasses", "collections.abc", "contextlib", "fnmatch", "hashlib", "json", "re", "pydantic"}
"""What the core may import besides itself: values, types and encodings."""

IMPURE_CALLS = {"open", "input", "print", "eval", "exec", "__import__", "globals", "id", "hash"}
"""Built-ins that reach outside, or differ between two processes."""


def impurities(source: str) -> Iterator[str]:
    """Yield what does not belong in the core."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"line {node.lineno} calls {node.func.id}"
        elif isinstance(node, ast.Global | ast.AsyncFunctionDef | ast.Await) and not in_protocol(source, node):
            yield f"line {node.lineno} has {type(node).__name__}"
        for name in names:
            if name not in PURE and not name.startswith("perdure.core"):
                yield f"imports {name}"


def in_protocol(source: str, wanted: ast.AST) -> bool:
    """Whether this is a method of a port: ports are protocols, their methods have no body."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "Protocol" for base in node.bases):
            lines = range(node.lineno, (node.end_lineno or 0) + 1)
            if isinstance(wanted, ast.AsyncFunctionDef) and wanted.lineno in lines:
                return True
    return False


def unexplained(source: str) -> Iterator[str]:
    """Yield constants without a reason: a string after it, or after the block of constants that it stands in."""
    lines = source.splitlines()
    body = ast.parse(source).body
    for place, node in enumerate(body):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        rest = body[place + 1 :]
        last: ast.stmt = node
        while rest and isinstance(rest[0], ast.Assign | ast.AnnAssign) and rest[0].lineno == (last.end_lineno or 0) + 1:
            last = rest.pop(0)
        if not (rest and isinstance(rest[0], ast.Expr) and rest[0].lineno == (last.end_lineno or 0) + 1):
            yield lines[node.lineno - 1]


def asserts(source: str) -> Iterator[str]:
    """Yield assert statements; they vanish under -O."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno}"


def leftovers(source: str) -> Iterator[str]:
    """Yield marks of unfinished work."""
    for number, line in enumerate(source.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield f"line {number}: {line.strip()}"


def too_long(source: str) -> Iterator[str]:
    """Yield the length of a file that should be split by idea."""
    count = source.count("\n")
    if count > LINES_MAX:
        yield f"{count} lines"


def without_idea(source: str) -> Iterator[str]:
    """Yield a file that does not say what it is for."""
    if source.strip() and ast.get_docstring(ast.parse(source)) is None:
        yield "no docstring"


Rule = Callable[[str], Iterator[str]]


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_core_is_pure(path: Path) -> None:
    assert list(impurities(path.read_text())) == []


@pytest.mark.parametrize("rule", [asserts, leftovers, too_long, without_idea], ids=lambda r: r.__name__)
def test_every_source_file(rule: Rule) -> None:
    found = {str(p.relative_to(ROOT)): list(rule(p.read_text())) for p in ALL}
    assert {path: marks for path, marks in found.items() if marks} == {}


@pytest.mark.parametrize("name", sorted(path.name for path in (SOURCE / "core").glob("*limits.py")))
def test_every_limit_has_its_reason(name: str) -> None:
    assert list(unexplained((SOURCE / "core" / name).read_text())) == []


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (impurities, "import time"),
        (impurities, "from perdure.store import schema"),
        (impurities, "from . import x"),
        (impurities, "x = open('y')"),
        (impurities, "async def f() -> None: ..."),
        (unexplained, "A = 1\n\nB = 2\n'''Why.'''\n"),
        (unexplained, "A = 1\n\n'''A heading.'''\n"),
        (asserts, "assert x"),
        (leftovers, "# TO" + "DO: later"),
        (too_long, "\n" * (LINES_MAX + 1)),
        (without_idea, "x = 1"),
    ],
)
def test_each_rule_can_fail(rule: Rule, source: str) -> None:
    assert list(rule(source))


def test_layers_and_the_pure_core_hold_for_the_linter_too() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    told = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env={"PATH": ""}
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "0 broken" in told.stdout
