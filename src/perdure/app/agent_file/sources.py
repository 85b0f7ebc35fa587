"""The sources of an agent file: `[mcp.NAME]` and `[http.NAME]`, as `McpServer` and `OpenApiTools`.

Made, not opened: nothing is started or connected to, and no secret is read.
"""

from functools import partial

from perdure.app.agent_file.beside import Beside, stated
from perdure.app.agent_file.form import AgentForm, HttpForm, McpForm, OauthForm
from perdure.core.sources import ToolSource


def sources_of(form: AgentForm, beside: Beside) -> list[ToolSource]:
    """Return the sources, MCP servers first, each group in the file's order."""
    made: list[ToolSource | None] = []
    for name, mcp in form.mcp.items():
        made.append(beside.places.tried(("mcp", name), partial(_mcp, name, mcp, beside), McpForm.model_fields))
    for name, http in form.http.items():
        if name in form.mcp:
            text = f"an MCP server has this name too, and so would their tools, {name}.…; rename one"
            beside.places.refuse(("http", name), text)
        made.append(beside.places.tried(("http", name), partial(_http, name, http, beside), HttpForm.model_fields))
    return [source for source in made if source is not None]


def _mcp(name: str, form: McpForm, beside: Beside) -> ToolSource:
    from perdure.tools.mcp import ClientCredentials, McpServer  # noqa: PLC0415 - for those who have a server

    keywords = stated(form, *McpForm.model_fields)
    if form.command:
        keywords["cwd"] = str(beside.folder / (form.cwd or ""))
    if form.oauth is not None:
        keywords["oauth"] = ClientCredentials(**stated(form.oauth, *OauthForm.model_fields))
    return McpServer(name, **keywords)


def _http(name: str, form: HttpForm, beside: Beside) -> ToolSource | None:
    from perdure.tools.http import OpenApiTools  # noqa: PLC0415 - its parser is for those who have a service

    keywords = stated(form, *HttpForm.model_fields)
    if "://" not in form.document:
        keywords["document"] = beside.file(("http", name, "document"), form.document)
    return None if keywords["document"] is None else OpenApiTools(name, **keywords)
