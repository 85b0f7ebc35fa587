"""Every command, option, extra and variable that the README and the pages under docs/ name is one.

Commands that are not run by a test are parsed by the real command line, those in the middle of a sentence too: one that
is renamed, or has an option less, is seen here. A command with words behind its name is whole; one that is only its
name and options ("`perdure send --json`") is a mention, and may lack its arguments.
"""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.exceptions import Exit, TyperException
from typer.main import get_command

from perdure.app.entry import EntryLimits
from perdure.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITHOUT = re.compile(r"^(?:\w+=\S* )+")
"""Variables that are set in front of a command."""


def inline(page: str) -> list[str]:
    """Return what stands in backticks in the middle of sentences."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", FENCED.sub("", PAGES[page]))]


def fenced(page: str) -> list[str]:
    """Return the commands of its blocks, without what a shell does around them."""
    lines = []
    for language, block in FENCED.findall(PAGES[page]):
        if language == "sh":
            lines += block.splitlines()
        elif language == "console":
            lines += [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return [WITHOUT.sub("", line) for line in lines]


def of_perdure(lines: list[str]) -> list[str]:
    return sorted({line for line in lines if line.startswith("perdure ")})


WHOLE = [(page, line) for page in PAGES for line in of_perdure(fenced(page))]
MENTIONED = [(page, line) for page in PAGES for line in of_perdure(inline(page))]


def parse(line: str) -> str:
    """Parse a command as the command line does; return what is wrong with it, and nothing of a right one."""
    words = shlex.split(line)
    command, context = get_command(app), None
    name, rest = words[0], words[1:]
    try:
        while True:
            context = command.make_context(name, list(rest), parent=context)
            if not isinstance(command, TyperGroup):
                return ""
            given, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            if found is None:
                return f"there is no command {given}"
            name, command = str(given), found
    except Exit:  # of --help, which wants nothing else
        return ""
    except TyperException as error:
        return f"{type(error).__name__}: {error.format_message()}"


@pytest.mark.parametrize(("page", "line"), WHOLE)
def test_each_command_of_a_block_is_taken(page: str, line: str) -> None:
    assert parse(line) == "", page


@pytest.mark.parametrize(("page", "line"), MENTIONED)
def test_each_command_in_a_sentence_is_taken(page: str, line: str) -> None:
    problem = parse(line)
    is_whole = any(not word.startswith("-") for word in shlex.split(line)[2:])
    assert problem == "" or (problem.startswith("MissingParameter") and not is_whole), page


def test_a_command_that_is_renamed_would_be_seen() -> None:
    assert "No such option: --resumed" in parse("perdure run agent.toml --resumed TASK")
    assert "No such command 'works'" in parse("perdure works agent.toml")
    assert "MissingParameter" in parse("perdure steer URL")
    assert "unexpected extra argument" in parse("perdure backup DIR DIR")
    assert "'both' is not one of" in parse("perdure send URL hello --lane both")
    assert "No such command 'give'" in parse("perdure keys give alice")
    lines = [line for _, line in MENTIONED]
    for name in ("run agent.toml --resume", "worker", "backup", "answer", "cancel", "steer"):
        assert any(line.startswith(f"perdure {name} ") for line in lines), name


@cache
def options() -> frozenset[str]:
    """Return every option of every command."""
    found: set[str] = set()
    root = get_command(app)
    waiting = [root]
    while waiting:
        command = waiting.pop()
        for parameter in command.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
        if isinstance(command, TyperGroup):
            context = command.make_context("perdure", ["--help"], resilient_parsing=True)
            waiting += [each for name in command.list_commands(context) if (each := command.get_command(context, name))]
    return frozenset(found)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_each_option_that_is_named_alone_is_one(page: str) -> None:
    named = {code.split()[0] for code in inline(page) if code.startswith("--")}
    assert named - options() == set()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_each_script_and_extra_is_there(page: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for line in [*fenced(page), *inline(page)]:
        if line.startswith("sh scripts/"):
            script, *given = line.removeprefix("sh ").split()
            assert (ROOT / script).is_file(), line
            assert set(given) <= extras.keys(), line
    assert set(re.findall(r"perdure\[(\w+)\]", PAGES[page])) <= extras.keys()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_each_variable_is_read_somewhere(page: str) -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"(?:PERDURE|TEMPORAL)_[A-Z_]+[A-Z]", source))
    bounds = {f"PERDURE_{field.upper()}" for field in EntryLimits.model_fields}
    assert set(re.findall(r"\b(?:PERDURE|TEMPORAL)_[A-Z_]+[A-Z]\b", PAGES[page])) <= read | bounds
