"""The tools from Python that an agent file lists, under what `[rules]` says of them."""

from typing import Any, Final

from perdure.app.agent_file.beside import Beside
from perdure.app.agent_file.form import AgentForm
from perdure.app.agent_file.wording import nearest
from perdure.core.errors import ConfigurationError
from perdure.core.ports import ToolPort
from perdure.core.sources import ToolSource
from perdure.core.tool_rules import ToolRules, is_pattern, rules_for
from perdure.tools.ruled import ruled


def functions_of(form: AgentForm, beside: Beside) -> list[ToolPort | ToolSource]:
    """Return the tools of `tools`, in its order; a source that is made in Python may stand there too."""
    found: list[ToolPort | ToolSource] = []
    names: dict[str, str] = {}
    for place, reference in enumerate(form.tools):
        path = ("tools", place)
        tool: Any = beside.find(path, reference, _refuse_what_is_no_tool)
        if isinstance(tool, ToolSource):
            found.append(tool)
        elif tool is not None:
            name = tool.spec.name
            if name in names:
                text = f"{reference} is a tool {name!r}, as {names[name]} is; take one out, or rename it"
                beside.places.refuse(path, text)
            names.setdefault(name, reference)
            found.append(_ruled(tool, form, beside))
    if not beside.places.found:
        _refuse_idle_rules(form, beside, list(names))
    return found


def _ruled(tool: ToolPort, form: AgentForm, beside: Beside) -> ToolPort:
    rules = rules_for(tool.spec.name, form.rules)
    pattern = next((pattern for pattern, given in form.rules.items() if given is rules), None)
    if pattern is None:
        return tool
    return beside.places.tried(("rules", pattern), lambda: ruled(tool, rules), ToolRules.model_fields) or tool


def _refuse_idle_rules(form: AgentForm, beside: Beside, names: list[str]) -> None:
    """Rules that hold for no function are a mistyped name, and would leave the tool as its author had it."""
    for pattern in form.rules:
        if any(rules_for(name, {pattern: _ANY}) is _ANY for name in names):
            continue
        what = "no function's name fits it" if is_pattern(pattern) else "no function of tools is named so"
        known = f"; there are {', '.join(names)}" if names else "; tools lists none"
        beside.places.refuse(("rules", pattern), f"{what}{nearest(pattern, names) or known}")


def _refuse_what_is_no_tool(reference: str, found: Any) -> None:
    if isinstance(found, ToolSource) or (hasattr(found, "spec") and hasattr(found, "invoke")):
        return
    what = "is a function without @perdure.tool; decorate it" if callable(found) else "is no tool"
    raise ConfigurationError("tools", f"{reference} {what}")


_ANY: Final = ToolRules()
