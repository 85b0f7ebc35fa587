"""Opening a model: what is wrong is said at once, and importing costs nothing."""

import subprocess
import sys

import pytest
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel as EchoModel

from perdure.core.errors import ConfigurationError
from perdure.models import open_model
from tests.models.talk import ask, user


@pytest.mark.parametrize(
    ("name", "variable"), [("openai:gpt-5", "OPENAI_API_KEY"), ("anthropic:claude-haiku-5-5", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_names_its_variable(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=variable) as caught:
        open_model(name)
    assert caught.value.field == "model"


@pytest.mark.parametrize("name", ["nowhere:gpt-5", "gpt-5", ""])
def test_an_unknown_provider_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="model"):
        open_model(name)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mistralai", None)
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    with pytest.raises(ConfigurationError, match="not installed"):
        open_model("mistral:mistral-large-latest")


async def test_a_model_of_pydantic_ai_can_be_given() -> None:
    model = open_model(EchoModel(custom_output_text="Hello."))
    deltas: list[str] = []
    reply = await ask(model, user("Hi"), tools=[], deltas=deltas)
    assert model.name == reply.model == "test:test"
    assert reply.text == "".join(deltas) == "Hello."


async def test_a_model_that_cannot_stream_is_asked_for_the_whole() -> None:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(f"{len(messages)} message")])

    reply = await ask(open_model(FunctionModel(answer), stream=False), user("Hi"))
    assert (reply.text, reply.usage.cost_usd) == ("1 message", 0)


def test_importing_the_package_imports_no_provider() -> None:
    code = "import sys, perdure.models; print([m for m in sys.modules if m in ('pydantic_ai', 'openai', 'anthropic')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
