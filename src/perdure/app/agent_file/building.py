"""From the form to the very same objects that Python makes: `Agent`, `McpServer`, `OpenApiTools`, `ToolRules`.

Everything that needs more than the text is looked at here: files beside it, modules, what the constructors refuse.
All of it is looked at, so that one reading tells all that is wrong. What a file names is relative to the file.
"""

from typing import Any, Final

from perdure.app.agent import Agent
from perdure.app.agent_file.beside import Beside, stated
from perdure.app.agent_file.form import AgentForm
from perdure.app.agent_file.functions import functions_of
from perdure.app.agent_file.lines import Path
from perdure.app.agent_file.problems import AgentFileError
from perdure.app.agent_file.sources import sources_of
from perdure.app.agent_file.wording import as_in
from perdure.core.errors import ConfigurationError
from perdure.core.rulebook import Rulebook

PYTHON: Final = "python:"
"""Before a model that is an object in Python: `python:module:name`."""

_AS_THEY_STAND: Final = (
    "description",
    "version",
    "after_answer",
    "on_unanswered",
    "asks",
    "asks_expire_in_s",
    "model_timeout_s",
    "model_heartbeat_timeout_s",
    "model_retry",
    "budget",
)
"""Keys that go to `Agent` with no more ado."""


def build(form: AgentForm, beside: Beside) -> Agent:
    """Return the agent; raises `AgentFileError` with all that is wrong."""
    places = beside.places
    # Its id is refused by the agent itself; asked alone, it is told beside everything else.
    places.tried((), lambda: Agent(form.id, model="test"), AgentForm.model_fields)
    keywords = stated(form, *_AS_THEY_STAND) | {
        "approvals": tuple(form.approvals),
        "instructions": _instructions(form, beside),
        "model": _model(("model",), form.model, beside),
        "fallbacks": _fallbacks(form, beside),
        "tools": (*functions_of(form, beside), *sources_of(form, beside)),
    }
    _refuse_approvals(form, beside)
    places.raise_found()
    made = places.tried((), lambda: Agent(form.id, **keywords), AgentForm.model_fields)
    if made is None:
        raise AgentFileError(places.found)
    return made


def _refuse_approvals(form: AgentForm, beside: Beside) -> None:
    """Look at each condition at its own place; whether it names arguments of its tool sees the agent."""
    for place, rule in enumerate(form.approvals):
        try:
            Rulebook((rule,), ())
        except ConfigurationError as error:
            beside.places.refuse(("approvals", place, "when"), error.problem)


def _instructions(form: AgentForm, beside: Beside) -> str:
    path = ("instructions_file",)
    if form.instructions_file is None:
        return form.instructions or ""
    if form.instructions is not None:
        beside.places.refuse(path, "instructions are there too; keep one of the two")
    return beside.text(path, form.instructions_file)


def _model(path: Path, name: str, beside: Beside) -> object:
    """Return a model's name as it stands, or the object that it names in Python."""
    if name.startswith(PYTHON):
        return beside.find(path, name.removeprefix(PYTHON), _refuse_what_is_no_model)
    if ":" not in name and name != "test":
        beside.places.refuse(path, f"{name!r} names no provider; write provider:model{as_in(path)}")
    elif beside.has_module(name.partition(":")[0]):
        beside.places.refuse(path, f"{name!r} is in Python; write {PYTHON}{name}")
    return name


def _fallbacks(form: AgentForm, beside: Beside) -> tuple[object, ...]:
    names = form.fallbacks or []
    for place, name in enumerate(names):
        if name in (form.model, *names[:place]):
            beside.places.refuse(("fallbacks", place), f"{name!r} is named before; name another model, or take it out")
    return tuple(_model(("fallbacks", place), name, beside) for place, name in enumerate(names))


def _refuse_what_is_no_model(reference: str, found: Any) -> None:
    if not hasattr(found, "reply") and not hasattr(found, "request"):
        kind = type(found).__name__
        raise ConfigurationError("model", f"{reference} is a {kind}, no model; name a pydantic-ai Model or a ModelPort")
