"""Agents as files: TOML that says what `Agent(…)` says in Python, for who operates an agent and does not program it.

- `form`: the tables and keys; `lines`: where they stand; `wording`: how a value that does not fit is told;
- `reading`: from the text to the form; `building`: from the form to an `Agent`, `functions` and `sources` its tools;
- `beside` and `python_names`: what the file names, files and Python;
- `problems`: everything that is wrong with a file, each with its place and its fix.
"""

from pathlib import Path

from perdure.app.agent import Agent
from perdure.app.agent_file.beside import Beside
from perdure.app.agent_file.building import build
from perdure.app.agent_file.problems import AgentFileError, Problem
from perdure.app.agent_file.reading import read_form

__all__ = ["AgentFileError", "Problem", "load_agent_file"]

ENDING = ".toml"


def load_agent_file(path: str | Path) -> Agent:
    """Return the agent that a TOML file describes; opens nothing.

    Modules that it names are imported, and found in its folder first. Other files that it names are relative to it.

    Raises:
        AgentFileError: Everything that is wrong with it, each with line, key and fix.
        ConfigurationError: It cannot be read.
    """
    file = Path(path)
    form, places = read_form(file)
    return build(form, Beside(file.absolute().parent, places))
