"""Shared by the model tests: the provider on loopback, and models that point to it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from perdure.models import open_model
from perdure.models.adapter import ProviderModel
from tests.models.wire import Wire, serving

NAMES = {
    "chat": "openai-chat:gpt-4.1",
    "responses": "openai-responses:gpt-5",
    "messages": "anthropic:claude-haiku-5-5",
}

Opener = Callable[..., ProviderModel]


def _given(wire_format: str, stream: bool) -> str | Model:
    if stream or wire_format != "messages":
        return NAMES[wire_format]
    # Without a bound on the reply, pydantic-ai streams what it was asked for whole.
    from pydantic_ai.models.anthropic import AnthropicModel

    return AnthropicModel(NAMES["messages"].removeprefix("anthropic:"), settings=ModelSettings(max_tokens=4096))


@pytest.fixture(scope="session")
def _server() -> Iterator[Wire]:
    with serving() as wire:
        yield wire


@pytest.fixture
def wire(_server: Wire, monkeypatch: pytest.MonkeyPatch) -> Wire:
    _server.received.clear()
    _server.prepared.clear()
    _server.arrived.clear()
    _server.left.clear()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{_server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test-0123456789")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", _server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-test-0123456789")
    return _server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _opened() -> AsyncIterator[dict[tuple[str, bool], ProviderModel]]:
    """Models once opened: each has an HTTP client, whose certificates take longer to load than a test to run."""
    models: dict[tuple[str, bool], ProviderModel] = {}
    yield models
    for model in models.values():
        await model.close()


@pytest.fixture
def opened(wire: Wire, _opened: dict[tuple[str, bool], ProviderModel]) -> Opener:
    def opener(wire_format: str, *, stream: bool = True) -> ProviderModel:
        model = _opened.get((wire_format, stream)) or open_model(_given(wire_format, stream), stream=stream)
        assert isinstance(model, ProviderModel)
        _opened[wire_format, stream] = model
        return model

    return opener
