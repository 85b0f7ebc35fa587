"""An MCP server as an agent's author names it: how it is reached, and what of it is offered under which rules.

A value: nothing is started, read or imported before it is opened.
"""

import contextlib
import difflib
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perdure.core.errors import ConfigurationError
from perdure.core.mcp_limits import MCP_CONNECT_S
from perdure.core.ports import ToolPort
from perdure.core.tool_rules import ToolRules, is_pattern
from perdure.tools.environment import Environment

if TYPE_CHECKING:
    import httpx2

    from perdure.tools.mcp.connection import Dial

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class ClientCredentials:
    """How a worker gets tokens for a server without a person: OAuth's client credentials.

    `${NAME}` in any of them is taken from the environment. `issuer` is the URL of the authorization server: whoever the
    MCP server names, the secret is shown to that one alone.
    """

    client_id: str
    client_secret: str
    issuer: str
    scope: str | None = None


@dataclass(frozen=True)
class McpServer:
    """An MCP server whose tools an agent may call, as `name.tool`: a command (stdio) or a URL (streamable HTTP).

    Each worker process has one connection, shared by its tasks; a server that is a command runs as long as its worker
    and ends with it, however that ends. `${NAME}` in values of `env`, `headers` and in `url` is taken from the
    environment when the server is opened.

    What a server claims of a tool (`readOnlyHint`, `idempotentHint`) gives its effect class where `rules` do not; what
    it does not claim is `once`. The idempotency key travels in `_meta` as `perdure/idempotency-key`. A rule's `check`
    names a tool of the server that is called with a key alone and answers `{"happened": true, "result": …}`,
    `{"happened": false, "final": true}` (it never will), or `{"happened": false}` (not so far).

    Args:
        name: What its tools' names begin with.
        command: The program and its arguments.
        env: Variables of its environment, beside the few that the MCP SDK passes on (PATH, HOME and the like).
        cwd: Its working folder.
        url: Where it is, in place of a command.
        headers: Sent with every request to the URL.
        oauth: How to get tokens for the URL.
        tools: Names and patterns (`*`, `?`) of the tools that are offered. `read_resource` and `get_prompt` are the
            names of the two that read its resources and prompts, where it has any.
        rules: What holds for a tool whatever the server claims, by its name or a pattern, without the server's name. A
            tool's own name counts before patterns, of those the first that fits.
        connect_timeout_s: For start, handshake and listing together.

    Raises:
        ConfigurationError: Names the field and the fix.
    """

    name: str
    command: Sequence[str] = field(default=(), kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    cwd: str | None = field(default=None, kw_only=True)
    url: str | None = field(default=None, kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    oauth: ClientCredentials | None = field(default=None, kw_only=True)
    tools: Sequence[str] = field(default=("*",), kw_only=True)
    rules: Mapping[str, ToolRules] = field(default_factory=dict, kw_only=True)
    connect_timeout_s: float = field(default=MCP_CONNECT_S, kw_only=True)

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.name) is None:
            raise ConfigurationError(
                "McpServer.name", f"{self.name!r}: use 1 to 64 of a-z, A-Z, 0-9, _ and -, a letter first"
            )
        where = self.place
        for name, given in (("command", self.command), ("tools", self.tools)):
            if isinstance(given, str):
                raise ConfigurationError(f"{where}, {name}", f"{given!r} is one text; give a list, as in [{given!r}]")
        if bool(self.command) == bool(self.url):
            raise ConfigurationError(where, "give command, the program to run, or url, where it is; one of the two")
        of_command = {"env": bool(self.env), "cwd": self.cwd is not None}
        of_url = {"headers": bool(self.headers), "oauth": self.oauth is not None}
        for name, is_given in (of_command if self.url else of_url).items():
            if is_given:
                kind = "a command" if self.url else "a URL"
                raise ConfigurationError(f"{where}, {name}", f"is for a server with {kind}; leave it out")
        if self.url and not self.url.startswith(("https://", "http://", "${")):
            raise ConfigurationError(f"{where}, url", f"{self.url!r} is no URL; write https://…")
        if not 0 < self.connect_timeout_s < float("inf"):
            raise ConfigurationError(f"{where}, connect_timeout_s", "is not a time; give seconds greater than 0")

    @property
    def place(self) -> str:
        """How errors name it."""
        return f"MCP server {self.name!r}"

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[ToolPort, ...]]:
        """Connect, list, and give the tools that are offered; end the connection, and a server of ours, at the end.

        Raises:
            ConfigurationError: A variable is missing, the command cannot be found, or a name fits no tool.
            Unavailable: The server did not start, or does not answer.
        """
        from perdure.tools.mcp.connection import Connection  # noqa: PLC0415 - the SDK is for those who open a server
        from perdure.tools.mcp.offering import offered  # noqa: PLC0415

        environment = Environment()
        connection = Connection(self.name, self._dial(environment), self.connect_timeout_s, environment.masked)
        try:
            yield await offered(self, connection, environment)
        finally:
            await connection.close()

    def _dial(self, environment: Environment) -> "Dial":
        """Return what reaches the server, with everything filled in that the environment has to give."""
        from perdure.tools.mcp import transports  # noqa: PLC0415

        where = self.place
        if self.url:
            url = environment.filled(f"{where}, url", self.url)
            headers = {
                name: environment.filled(f"{where}, headers.{name}", value) for name, value in self.headers.items()
            }
            auth = None if self.oauth is None else self._credentials(url, self.oauth, environment)
            return lambda on_end: transports.over_http(url, headers, auth, on_end)
        env = {name: environment.filled(f"{where}, env.{name}", value) for name, value in self.env.items()}
        cwd = None if self.cwd is None else str(Path(self.cwd).expanduser())
        if cwd is not None and not Path(cwd).is_dir():
            raise ConfigurationError(f"{where}, cwd", f"there is no folder {cwd}; name one that exists")
        program = _program(where, self.command[0], cwd, env.get("PATH"))
        command = (program, *self.command[1:])
        return lambda on_end: transports.over_stdio(command, env, cwd, on_end)

    def _credentials(self, url: str, given: ClientCredentials, environment: Environment) -> "httpx2.Auth":
        from perdure.tools.mcp.tokens import provider  # noqa: PLC0415

        def filled(name: str, text: str) -> str:
            return environment.filled(f"{self.place}, oauth.{name}", text)

        return provider(
            url,
            filled("client_id", given.client_id),
            filled("client_secret", given.client_secret),
            filled("issuer", given.issuer),
            None if given.scope is None else filled("scope", given.scope),
        )

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Raise for a name that fits none of the server's tools: what it says would hold for nothing, unnoticed."""
        named = [("tools", name) for name in self.tools] + [("rules", name) for name in self.rules]
        named += [(f"rules.{name}.check", rule.check) for name, rule in self.rules.items() if rule.check]
        for at, name in named:
            if name in known or (is_pattern(name) and not at.endswith("check")):
                continue
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known)[:20]) or 'none'}"
            raise ConfigurationError(f"{self.place}, {at}", f"it has no tool {name!r}; {hint}")


def _program(where: str, program: str, cwd: str | None, path: str | None) -> str:
    """Return the program to run; one with a folder in its name is found from `cwd`."""
    if os.sep in program:
        found = Path(cwd or ".", Path(program).expanduser())
        if os.access(found, os.X_OK) and found.is_file():
            return str(found.absolute())
    else:
        listed = shutil.which(program, path=path)
        if listed is not None:
            return listed
    raise ConfigurationError(
        f"{where}, command", f"there is no program {program!r} to run; install it, or give its whole path"
    )
