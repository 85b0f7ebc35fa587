"""`perdure chaos`: see with your own agent what kills do to it."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from perdure.app.app import open_app
from perdure.app.loading import load_agent
from perdure.app.newborn import LOG_FORMAT
from perdure.app.settings import Settings
from perdure.cli.chaos.case import Case
from perdure.cli.chaos.floor import figures
from perdure.cli.chaos.keeping import keep as keep_trial
from perdure.cli.chaos.modes import MODES, Mode
from perdure.cli.chaos.probe import load_probe
from perdure.cli.chaos.schedule import KILLS_MAX, Every, Target, parse_seeds, planned
from perdure.cli.chaos.shop import shop_case
from perdure.cli.chaos.telling import Tried, broken_in, print_object, print_sum, print_trial, sum_object, trial_object
from perdure.cli.chaos.ten_steps import STEP_S, ten_steps
from perdure.cli.chaos.trial import Bed, Order, run_trial
from perdure.cli.chaos.verdict import judge
from perdure.cli.output import note
from perdure.cli.places import data_folder
from perdure.cli.signals import Interrupted, say_ending, until_signal
from perdure.core.errors import ConfigurationError, InvalidInput, PerdureError, RunFailed
from perdure.temporal.connection import temporal_client

WITHIN_S: Final = 600.0
"""One run of an agent that takes longer needs a larger --within; a stuck one must not hold a command for ever."""


class Targets(StrEnum):
    """What may be killed."""

    worker = "worker"
    app = "app"
    temporal = "temporal"
    all = "all"


class Modes(StrEnum):
    """How a death is found."""

    supervised = "supervised"
    heartbeat = "heartbeat"
    timeout = "timeout"
    all = "all"


class Experiment(StrEnum):
    """Built-in agents with an outside world of their own."""

    ten_steps = "ten-steps"
    shop = "shop"


TARGETS: Final[dict[Targets, tuple[Target, ...]]] = {
    Targets.worker: ("worker",),
    Targets.app: ("app",),
    Targets.temporal: ("temporal",),
    Targets.all: ("worker", "app", "temporal"),
}


def chaos(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="A TOML file or module:agent, or none with --experiment.")
    ] = None,
    messages: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE...", help="What it is told; each further one after the answer before it."),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="TEXT", help="The answer to its next question; may be given several times."),
    ] = None,
    kills: Annotated[int, typer.Option(min=1, max=KILLS_MAX, metavar="N", help="How many kills.")] = 8,
    every: Annotated[
        str, typer.Option(metavar="SECONDS", help="The time from one kill to the next, drawn within bounds.")
    ] = "2-6",
    seed: Annotated[
        str, typer.Option("--seed", "--seeds", metavar="N", help="1, 1-5 or 1,4,9: a trial for each schedule.")
    ] = "1",
    targets: Annotated[
        Targets,
        typer.Option(
            help="worker: worker processes; app: the process of perdure run, with all its workers; temporal: the "
            "embedded server; all: any of them."
        ),
    ] = Targets.worker,
    mode: Annotated[
        Modes,
        typer.Option(
            help="How a death is found. heartbeat and timeout are Temporal's plain ways, to compare: a heartbeat "
            "timeout of 2 s, or a start-to-close timeout of 10 s, and no supervisor that reports."
        ),
    ] = Modes.supervised,
    probe: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help='Returns what the outside world saw: a list of {"key": …, "tool": …}, one item per applied effect.',
        ),
    ] = None,
    experiment: Annotated[Experiment | None, typer.Option(help="A built-in case instead of an agent of yours.")] = None,
    step_s: Annotated[
        float, typer.Option(min=0.01, max=60.0, metavar="SECONDS", help="How long each of the ten steps works.")
    ] = STEP_S,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A new folder for schedules, evidence, histories and data.")
    ] = None,
    within: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="The longest that one run may take.")] = (
        WITHIN_S
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines; the last one is the sum.")] = False,
) -> None:
    """Run an agent undisturbed, then under kills, and judge every promise.

    The agent runs with its own tools: what they change outside is changed,
    once for each run. Kills take the worker that has a call in hand, where
    one has. The limit of crashes in a row is set above the kills.

    Exits 0 when no promise was broken, 1 when one was, 2 for wrong usage.
    """
    asked = _Asked(
        agent=agent,
        messages=tuple(messages or ()),
        answers=tuple(answers or ()),
        kills=kills,
        every=Every.parse(every),
        seeds=parse_seeds(seed),
        targets=targets,
        modes=tuple(each for each in MODES if mode.value in {each, Modes.all}),
        probe=probe,
        experiment=experiment,
        step_s=step_s,
        within_s=within,
        as_json=as_json,
    )
    asked.refuse()
    with _stage(keep) as stage:
        try:
            trials = asyncio.run(until_signal(_try(asked, stage), say_ending))
        except Interrupted as interrupted:
            raise typer.Exit(128 + interrupted.number) from interrupted
    raise typer.Exit(1 if broken_in(trials) else 0)


@dataclass(frozen=True)
class _Asked:
    """What was asked for."""

    agent: str | None
    messages: tuple[str, ...]
    answers: tuple[str, ...]
    kills: int
    every: Every
    seeds: tuple[int, ...]
    targets: Targets
    modes: tuple[Mode, ...]
    probe: str | None
    experiment: Experiment | None
    step_s: float
    within_s: float
    as_json: bool

    @property
    def as_app(self) -> bool:
        return "app" in TARGETS[self.targets]

    def refuse(self) -> None:
        """Raise for what does not go together, before anything is started."""
        if self.experiment is None and self.agent is None:
            raise InvalidInput("AGENT", 'is missing; write perdure chaos module:agent "message", or --experiment')
        if self.experiment is None and not self.messages:
            raise InvalidInput("MESSAGE", 'is missing; write perdure chaos module:agent "message"')
        if self.experiment is not None and (self.agent or self.answers or self.probe):
            raise InvalidInput("--experiment", "brings its own agent, answers and probe; leave yours out")
        if self.as_app and self.modes != ("supervised",):
            raise InvalidInput("--mode", "perdure run always supervises its workers; compare with --targets worker")

    def case(self, home: Path) -> Case:
        """Return what is put under chaos; loads the agent."""
        match self.experiment:
            case Experiment.ten_steps:
                return ten_steps(home, self.step_s)
            case Experiment.shop:
                return shop_case(home)
            case None:
                folder = Path.cwd()
                loaded = load_agent(self.agent or "")
                if len(self.messages) > 1 and loaded.after_answer == "completed":
                    raise InvalidInput(
                        "MESSAGE",
                        f"agent {loaded.id!r} completes its task with the first answer and takes no second message; "
                        'give one, or Agent(after_answer="input_required")',
                    )
                return Case(
                    agent=loaded,
                    reference=self.agent or "",
                    folder=folder,
                    messages=self.messages,
                    answers=self.answers,
                    probe=None if self.probe is None else load_probe(self.probe, folder),
                )


@dataclass(frozen=True)
class _Stage:
    """Where trials leave their data, and where their evidence is kept, if it is."""

    home: Path
    kept: Path | None


@contextlib.contextmanager
def _stage(keep: Path | None) -> Iterator[_Stage]:
    """Make the trials' own data folder; it goes when all went as it should, unless it is to be kept."""
    if keep is not None:
        kept = keep.absolute()
        try:
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            (kept / "data").mkdir(mode=0o700)
        except OSError as error:
            raise ConfigurationError("--keep", f"{keep} cannot be used: {error.strerror}; name a new folder") from error
        yield _Stage(kept / "data", kept)
        note(f"schedules, evidence and histories are in {kept}")
        return
    folder = data_folder(Settings.from_environment()) / "chaos"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        home = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    except OSError as error:
        raise ConfigurationError("PERDURE_HOME", f"{folder} cannot be used: {error.strerror}") from error
    left = False
    try:
        yield _Stage(home, None)
    except InvalidInput:
        raise
    except PerdureError:
        left = True
        note(f"what was left is in {home}; the workers' log is worker.log")
        raise
    finally:
        if not left:
            shutil.rmtree(home)


async def _try(asked: _Asked, stage: _Stage) -> list[Tried]:
    settings = Settings.apart(stage.home)
    case = asked.case(stage.home)
    # What is said of a server that was killed belongs beside the trial's data, not between its tables.
    logging.basicConfig(level=logging.WARNING, filename=stage.home / "chaos.log", format=LOG_FORMAT)
    trials: list[Tried] = []
    async with (
        open_app(case.agent, settings=settings, worker=False) as app,
        temporal_client(settings.temporal) as client,
    ):
        bed = Bed(app, client, settings, asked.as_app, asked.within_s)
        note("the undisturbed run …")
        undisturbed = await run_trial(bed, case, Order("supervised", asked.kills))
        if stage.kept is not None:
            await keep_trial(stage.kept, client, undisturbed, ())
        if undisturbed.reason not in {"", "answered"} or undisturbed.state not in {"completed", "input_required"}:
            message = str(undisturbed.events[-1].data.get("message", "")) or "undisturbed, before any kill"
            raise RunFailed(undisturbed.task_id, undisturbed.state, undisturbed.reason, message)
        note(f"it took {undisturbed.lasted_s:.1f} s")
        for mode in asked.modes:
            for seed in asked.seeds:
                note(f"{mode}, seed {seed}: {asked.kills} kills …")
                plan = planned(seed, asked.kills, asked.every, TARGETS[asked.targets])
                evidence = await run_trial(bed, case, Order(mode, asked.kills, seed, plan))
                judgements = (*judge(undisturbed, evidence), *case.claims(evidence))
                tried = Tried(evidence, figures(undisturbed.lasted_s, evidence), judgements)
                trials.append(tried)
                if stage.kept is not None:
                    await keep_trial(stage.kept, client, evidence, judgements)
                if asked.as_json:
                    print_object(trial_object(tried))
                else:
                    print_trial(tried)
    if asked.as_json:
        print_object(sum_object(trials))
    else:
        print_sum(trials)
    return trials
