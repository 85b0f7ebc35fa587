"""An agent's models: the first and its fallbacks, as they are declared, recorded and opened."""

from typing import Any

import pytest
from pydantic_ai.models.test import TestModel

from perdure import Agent
from perdure.core import limits
from perdure.core.errors import ConfigurationError
from perdure.testing import say, scripted


def test_what_a_task_records_of_its_models() -> None:
    agent = Agent(
        "a", model="openai:gpt-5", fallbacks=[TestModel(), scripted(say("x"), name="mine")], model_timeout_s=9
    )
    spec = agent.spec()
    assert [model.name for model in spec.models] == ["openai:gpt-5", "test:test", "mine"]
    assert {model.timeout_s for model in spec.models} == {9}
    assert spec.models[1:] == spec.fallbacks


@pytest.mark.parametrize(
    ("fallbacks", "told"),
    [
        ("openai:gpt-5", r"'openai:gpt-5' is one model; write \['openai:gpt-5'\]"),
        (["test", "openai:gpt-5"], "'openai:gpt-5' is named twice; name other models than the first"),
        (["test:a", "test:a"], "'test:a' is named twice"),
        ([f"test:{n}" for n in range(limits.FALLBACKS_MAX + 1)], "there are 5; name 4 at most"),
    ],
)
def test_fallbacks_that_cannot_help_are_refused(fallbacks: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Agent\.fallbacks: {told}"):
        Agent("a", model="openai:gpt-5", fallbacks=fallbacks)


async def test_a_worker_opens_them_all_and_says_which_cannot_be() -> None:
    agent = Agent("a", model="test", fallbacks=["opnai:gpt-5"])
    with pytest.raises(ConfigurationError, match=r"'opnai:gpt-5' cannot be opened.*did you mean 'openai:gpt-5'"):
        agent.live(None, "w", lambda: 0)  # type: ignore[arg-type] # the store is not reached
