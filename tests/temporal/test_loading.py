"""Loading an agent by its name: every mistake is named, and a module that acts on import is refused."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure import Agent, open_app
from perdure.app.loading import importing, load_agent
from perdure.core.errors import ConfigurationError

AGENT = """
from perdure import Agent
from perdure.testing import say, scripted
agent = Agent('a', model=scripted(say('x')))
"""

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write the users' module of this test in the current folder; it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"users_{tmp_path.name.replace('-', '_')}"

    def put(text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        return name

    yield put
    sys.modules.pop(name, None)


def refused(reference: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        load_agent(reference)
    assert error.value.field == "AGENT"
    return error.value.problem


def test_an_agent_is_found_in_the_current_folder(write: Write) -> None:
    loaded = load_agent(f"{write(AGENT)}:agent")
    assert isinstance(loaded, Agent)
    assert loaded.id == "a"
    assert importing.get() is None


@pytest.mark.parametrize("reference", ["", "module", ":agent", "module:"])
def test_a_malformed_name_shows_how_it_is_written(reference: str) -> None:
    assert "write module:agent" in refused(reference)


def test_a_missing_module_and_a_missing_dependency_are_told_apart(write: Write) -> None:
    assert "there is no module 'no_such_module'" in refused("no_such_module:agent")
    assert "there is no module 'no_such_module.deeper'" in refused("no_such_module.deeper:agent")
    name = write("import no_such_dependency\n")
    assert refused(f"{name}:agent") == f"module {name!r} needs 'no_such_dependency', which is missing"


def test_a_missing_attribute_and_one_that_is_no_agent_are_named(write: Write) -> None:
    name = write(f"{AGENT}other = 5\n")
    assert f"module {name!r} has no 'agnet'" in refused(f"{name}:agnet")
    assert "is a int, not a perdure.Agent" in refused(f"{name}:other")


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("import sys\nsys.exit(0)\n", "it exits"),
        (
            "import asyncio\nloop = asyncio.new_event_loop()\n"
            "try:\n    loop.run_forever()\nfinally:\n    loop.close()\n",
            "it runs an event loop",
        ),
    ],
)
def test_a_module_that_acts_on_import_is_refused_with_the_fix(write: Write, action: str, what: str) -> None:
    name = write(AGENT + action)
    problem = refused(f"{name}:agent")
    assert what in problem
    assert f"module {name!r} acts when it is imported" in problem
    assert 'if __name__ == "__main__":' in problem


async def test_an_app_is_not_opened_while_a_module_is_imported() -> None:
    """Whatever way it found to run in."""
    token = importing.set("shop.agents:support")
    try:
        with pytest.raises(ConfigurationError, match=r"module 'shop\.agents' acts when it is imported"):
            async with open_app(Agent("a", model="test")):
                raise AssertionError("opened")
    finally:
        importing.reset(token)


def test_the_same_module_with_its_action_guarded_is_loaded(write: Write) -> None:
    name = write(f"{AGENT}if __name__ == '__main__':\n    raise SystemExit\n")
    assert load_agent(f"{name}:agent").id == "a"


RUNS_A_LOOP = """
import asyncio
async def main():
    open("acted", "w").close()
coroutine = main()
try:
    asyncio.run(coroutine)
finally:
    coroutine.close()
"""


def test_a_module_that_runs_a_loop_is_refused_and_has_not_run_it(write: Write, tmp_path: Path) -> None:
    assert "it runs an event loop" in refused(f"{write(AGENT + RUNS_A_LOOP)}:agent")
    assert not (tmp_path / "acted").exists()


async def test_and_so_it_is_where_a_loop_runs_already(write: Write) -> None:
    assert "it runs an event loop" in refused(f"{write(AGENT + RUNS_A_LOOP)}:agent")


def test_a_module_that_raises_is_told_with_its_reason(write: Write) -> None:
    name = write("raise ValueError('the moon is wrong')\n")
    problem = refused(f"{name}:agent")
    assert "the moon is wrong" in problem
