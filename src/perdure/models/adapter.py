"""A pydantic-ai model behind the core's `ModelPort`: one request, one answer, no retry.

What a retry is, when it happens and what it costs is the workflow's to decide and the log's to show, so the SDKs' own
retries are off (`one_request.py`). Nothing is kept between calls but the HTTP connections: what is sent comes from the
request, and nothing is left with the provider that a later turn would depend on (a task may wait for a month, and
providers forget stored replies sooner).
"""

import difflib
import sys
from typing import get_args

from pydantic_ai import direct
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelAPIError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import KnownModelName, Model, ModelRequestParameters, infer_model
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from perdure.core import limits
from perdure.core.content import ModelReply
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import ConfigurationError, ModelError
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest, ToolSchema
from perdure.models.conversation import to_messages
from perdure.models.failures import model_error
from perdure.models.names import sent_name
from perdure.models.one_request import provider_factory, refuse_unseen_retries, takes_max_retries
from perdure.models.replies import to_reply

_ALWAYS_SAY_HOW_THEY_END = frozenset({"openai", "azure", "anthropic"})
"""Providers whose replies always carry a finish reason: a stream without one was cut, however politely."""

_SECRET_CHARS_MIN = 8
"""A shorter "key" (local servers take any) would mask parts of ordinary words."""


def resolve(name: str | Model) -> tuple[str, Model]:
    """Return a model and the name it is recorded under.

    Raises:
        ConfigurationError: see `perdure.models.open_model`.
    """
    if isinstance(name, Model):
        named = f"{name.system}:{name.model_name}"
        refuse_unseen_retries(named, name)
        return named, name
    if ":" not in name and name != "test":
        raise ConfigurationError(
            "model", f"{name!r} names no provider; write `provider:model`, such as `openai:{name}`"
        )
    try:
        model = infer_model(name, provider_factory(name))
    except ImportError as missing:
        # Its text names the package and the extra of pydantic-ai-slim that brings it.
        raise ConfigurationError("model", f"{name!r} needs a package that is not installed. {missing}") from missing
    except (UserError, ValueError) as refused:
        # Unknown providers and missing keys: pydantic-ai's text names the variable, and then its own way to test.
        said, near = str(refused).partition(" To try Pydantic AI")[0], _nearest(name)
        if near:  # its own guess is by whole names, and may be anything
            said = said.partition(". Did you mean")[0]
        raise ConfigurationError("model", f"{name!r} cannot be opened: {said}{near}") from refused
    refuse_unseen_retries(name, model)
    return name, model


def _nearest(name: str) -> str:
    """Return which provider was meant by one that nobody knows."""
    provider, _, model = name.partition(":")
    known = {each.partition(":")[0] for each in get_args(KnownModelName.__value__)}
    found = [] if provider in known else difflib.get_close_matches(provider, known, n=1)
    return f"; did you mean '{found[0]}:{model}'?" if found else ""


class ProviderModel:
    """A `ModelPort` over a pydantic-ai model. Safe for concurrent calls on one event loop."""

    def __init__(self, name: str, model: Model, *, stream: bool = True) -> None:
        self._name = name
        self._model = model
        self._stream = stream and type(model).request_stream is not Model.request_stream
        self._settings = _settings(model)

    @property
    def name(self) -> str:
        """The name that is recorded with every reply."""
        return self._name

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        """Make one request and return its answer; see `ModelPort.reply`.

        Raises:
            ModelError: the provider refused or failed, or this model cannot be told this conversation.
            InvariantBroken, StoreBehind, StoreUnavailable: the transcript or its files are not as they must be.
        """
        messages = await to_messages(
            request.transcript, safe_text(request.instructions), self._model.system, _profile(self._model), blobs
        )
        parameters = ModelRequestParameters(function_tools=[_definition(tool) for tool in request.tools])
        try:
            response = await self._ask(messages, parameters, on_delta)
        except (ModelAPIError, UnexpectedModelBehavior, FallbackExceptionGroup) as failed:
            # Without its cause, whose text may repeat what was sent, key included, and which Temporal would keep.
            raise model_error(failed, self._name, _secret(self._model)) from None
        except (UserError, NotImplementedError, AssertionError, RuntimeError) as refused:
            # What pydantic-ai's mapping raises, before anything is sent, for content that a provider's API lacks.
            raise ModelError(f"{self._name} cannot be sent this conversation: {refused}", retryable=False) from refused
        except (AttributeError, LookupError, TypeError, ValueError) as broken:
            # What reading a reply ends in that lacks a field its format requires, such as the usage.
            text = safe_text(f"{self._name}: the reply is not one that its format allows ({broken!r})")
            raise ModelError(cut_text(text, limits.PROBLEM_BYTES_MAX, " … (cut)"), retryable=True) from broken
        return to_reply(response, self._name, request.tools)

    async def close(self) -> None:
        """Close the connections to the provider. The model may not be used afterwards."""
        async with self._model:
            pass

    async def _ask(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters, on_delta: DeltaSink
    ) -> ModelResponse:
        if not self._stream:
            return await direct.model_request(
                self._model, messages, model_settings=self._settings, model_request_parameters=parameters
            )
        async with direct.model_request_stream(
            self._model, messages, model_settings=self._settings, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    _pass_on(event.part.content, on_delta)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    _pass_on(event.delta.content_delta, on_delta)
            response = stream.get()
        self._refuse_cut(response)
        return response

    def _refuse_cut(self, response: ModelResponse) -> None:
        """Refuse a stream that ended before its reply did: half an answer must not be recorded as one (P2)."""
        details = response.provider_details or {}
        unsaid = "finish_reason" not in details and "refusal" not in details
        if response.state == "incomplete" or (unsaid and self._model.system in _ALWAYS_SAY_HOW_THEY_END):
            raise ModelError(f"{self._name}: the stream ended before the reply did", retryable=True)


def _pass_on(text: str, on_delta: DeltaSink) -> None:
    if text:
        on_delta(safe_text(text))


def _settings(model: Model) -> ModelSettings:
    """Return what every request is made with: no retries of the SDK's own, nothing stored at the provider."""
    settings = ModelSettings()
    if takes_max_retries(model):
        settings["max_retries"] = 0
    # A model of that class exists only if its module was imported; importing it needs the `openai` package.
    responses = getattr(sys.modules.get("pydantic_ai.models.openai"), "OpenAIResponsesModel", None)
    if responses is not None and isinstance(model, responses) and "openai_store" not in (model.settings or {}):
        settings["openai_store"] = False  # type: ignore[typeddict-unknown-key]  # a key of that provider's own
    return settings


def _profile(model: Model) -> ModelProfile:
    try:
        return model.profile
    except NotImplementedError:  # a chain of fallbacks has none of its own
        return ModelProfile()


def _secret(model: Model) -> str | None:
    """Return the key in use, where the SDK's client shows it, so that no error text repeats it."""
    secret = getattr(getattr(model, "client", None), "api_key", None)
    return secret if isinstance(secret, str) and len(secret) >= _SECRET_CHARS_MIN else None


def _definition(tool: ToolSchema) -> ToolDefinition:
    return ToolDefinition(
        name=sent_name(tool.name),
        description=safe_text(tool.description),
        parameters_json_schema=dict(tool.parameters),
        # Strict modes accept a part of JSON schema only and change what is optional; arguments are checked here.
        strict=False,
    )
