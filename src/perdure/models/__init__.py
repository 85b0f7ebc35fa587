"""Models: the adapter between the core's transcript and every provider that pydantic-ai speaks to.

Only `pydantic-ai-slim`'s model classes are used: one request, one answer. Its agent loop is not, because the loop is
the workflow's. Importing this package imports neither pydantic-ai nor a provider's SDK (one to two seconds);
`open_model` does, and only the one that is asked for.
"""

from typing import TYPE_CHECKING

from perdure.core.ports import ModelPort

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["open_model"]


def open_model(name: "str | Model", *, stream: bool = True) -> ModelPort:
    """Open a model by pydantic-ai's name for it (`provider:model`), or around a pydantic-ai `Model`.

    Keys and endpoints come from the provider's own environment variables (`OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`,
    …). Nothing is sent. With `stream` the reply's text is passed on while it is made; a model that cannot stream is
    asked for the whole reply at once, as every model is without it.

    Each call of `reply` makes exactly one request: the SDKs' own retries are off, since the workflow makes every
    retry visible. A model that cannot be held to it is refused (`one_request.py`): for `bedrock` and `xai`, one that
    is handed in with a client that tries again by itself.

    Raises:
        ConfigurationError: the provider is unknown, its package is not installed, its key is missing, or its SDK
            would make a request more often than it is asked to.
    """
    from perdure.models.adapter import ProviderModel, resolve  # noqa: PLC0415 — a provider's SDK takes a second

    return ProviderModel(*resolve(name), stream=stream)
