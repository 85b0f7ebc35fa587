"""What is put under chaos: an agent, what it is told and answered, and who tells what the outside world saw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perdure.app.agent import Agent
from perdure.cli.chaos.evidence import Evidence
from perdure.cli.chaos.probe import Probe
from perdure.cli.chaos.verdict import Judgement


@dataclass(frozen=True)
class Case:
    """One agent with one conversation.

    `reference` (`module:agent`, found in `folder`) is what workers load, with `environment` on top of this process's.
    Each further message is sent when the one before was answered; questions get `answers` in order. `claims` judges
    what only this case can know.
    """

    agent: Agent
    reference: str
    folder: Path
    messages: tuple[str, ...]
    answers: tuple[str, ...] = ()
    probe: Probe | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    claims: Callable[[Evidence], tuple[Judgement, ...]] = lambda evidence: ()
