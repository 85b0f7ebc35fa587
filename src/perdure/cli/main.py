"""The command line: `perdure …`."""

import typer

from perdure.cli.worker import worker

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(worker)


@app.callback()
def root() -> None:
    """LLM agents that outlive their processes."""


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
