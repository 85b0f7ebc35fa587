"""What the pages under docs/ show is what the package takes."""

import re
import types
from pathlib import Path

import pytest

from perdure import Task
from perdure.app.agent_file.reading import read_form

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], flags=re.DOTALL)


AGENTS = [block for page in PAGES for block in blocks(page, "python") if " Agent(" in block]


@pytest.mark.parametrize("source", AGENTS)
def test_each_agent_can_be_made(source: str) -> None:
    program = types.ModuleType("shop")
    exec(source, program.__dict__)
    agents = [each for each in program.__dict__.values() if type(each).__name__ == "Agent"]
    assert [len(agent.tools) for agent in agents] == [1]


def test_the_operations_of_a_task_are_there() -> None:
    block = blocks("talking.md", "python")[0]
    assert all(callable(getattr(Task, name)) for name in re.findall(r"task\.(\w+)\(", block))


def test_the_agent_in_a_file_is_read(tmp_path: Path) -> None:
    (agent,) = blocks("agent-files.md", "toml")
    (tmp_path / "shop.toml").write_text(agent, encoding="utf-8")
    form, _ = read_form(tmp_path / "shop.toml")
    assert (form.id, sorted(form.mcp), sorted(form.http)) == ("shop", ["orders"], ["shipping"])


@pytest.mark.parametrize("page", sorted(PAGES))
def test_each_link_leads_to_a_file(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]):
        assert (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("page", sorted(PAGES))
def test_each_page_is_found_from_the_readme(page: str) -> None:
    assert f"docs/{page}" in (ROOT / "README.md").read_text()
