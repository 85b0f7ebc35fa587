"""The command line: `perdure …`.

Here errors become exit codes, and nowhere else: 0 done, 1 the run failed or something did not answer, 2 wrong usage
or configuration (the key is named), 128 + n ended by signal n. One line on standard error says what and, where there
is one, the way out; a traceback is for defects only and goes to a file.

This is one of the two places with a blanket `except`.
"""

import os
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from perdure.cli.lazy import LazyGroup
from perdure.core.errors import ConfigurationError, InvalidInput, PerdureError

DONE, FAILED, WRONG, SIGNAL_BASE = 0, 1, 2, 128

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"perdure {metadata.version('perdure')}")
        raise typer.Exit


@app.callback()
def root(
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="DIR",
            help="The data folder; overrides PERDURE_HOME. Without either it is the user's data folder for perdure: "
            "on Linux $XDG_DATA_HOME/perdure or ~/.local/share/perdure.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """LLM agents that outlive their processes.

    A task given to an agent finishes, is stopped or asks for help, whatever
    is killed meanwhile. Its records stand in the data folder: temporal.db
    (the embedded Temporal), store.db (events and effects), worker.log.

    AGENT is a TOML file, as in shop.toml, or module:attribute, as in
    shop.agents:support; the current folder is searched first.

    Exit codes: 0 done; 1 the run failed; 2 wrong usage or configuration;
    130 and 143 ended by a signal.
    """
    del version
    if home is None:
        return
    if not home.strip():
        raise ConfigurationError("--home", "is empty; name a folder")
    # The edge at which a command's option becomes what every part of it, and its children, read.
    os.environ["PERDURE_HOME"] = str(Path(home).expanduser().absolute())


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are told on standard error."""
    try:
        code = app(arguments, prog_name="perdure", standalone_mode=False)
    except TyperException as error:
        return _usage(error)
    except InvalidInput as error:
        return _say(str(error), WRONG)
    except PerdureError as error:
        return _say(str(error), FAILED)
    except (KeyboardInterrupt, Abort):
        return _say("interrupted", SIGNAL_BASE + 2)
    except BrokenPipeError:
        # Whoever read our output has gone; Python's own last flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last edge: whatever is left is a defect, and is told as one
        return _say(f"{type(error).__name__}: {error}\nThis is a defect of perdure; {_kept(error)}", FAILED)
    return code if isinstance(code, int) else DONE


def _say(text: str, code: int) -> int:
    print(f"error: {text}", file=sys.stderr, flush=True)
    return code


def _usage(error: TyperException) -> int:
    context = getattr(error, "ctx", None)
    where = "perdure" if context is None else context.command_path
    text = error.format_message()
    if context is not None and not text:
        return WRONG  # no command was named: making this error has printed the help
    return _say(f"{' '.join(text.split())} (see `{where} --help`)", WRONG)


def _kept(error: Exception) -> str:
    """Keep the traceback where a report can quote it; say where."""
    from perdure.app.settings import Settings  # noqa: PLC0415 - a defect in its own import must be reported too

    text = "".join(traceback.format_exception(error))
    try:
        path = Settings.from_environment().home / "defect.log"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
    except (OSError, PerdureError):
        return f"it came from\n{text}"
    return f"the whole of it is in {path}"


if __name__ == "__main__":
    main()
