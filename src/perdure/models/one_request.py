"""One request per attempt: what an SDK would try again by itself is switched off, or the model is refused.

A retry inside an SDK is a request that no log shows and no budget counts, that waits where no stop reaches it, and that
a provider's Retry-After does not bind. Most of pydantic-ai's models pass `max_retries` on to their SDK
(`adapter._settings`); those that cannot say so in `unsupported_settings`, and are settled here, once, when a model is
opened:

- `bedrock`: botocore tries a request five times. How often is part of its client, which is made anew with one.
- `xai`: gRPC calls a server that is unavailable five times. That is settled when the channel is opened and cannot be
  seen afterwards, so only a channel of this package counts (`one_request_xai.py`).
- `huggingface`, `system-one` and a client's own model by MCP: there is nothing to switch off, one call is one request.

Two things are left alone. A key that was found expired may be renewed and sent again: what was sent before was refused
unread. And whoever hands in an HTTP client with a retrying transport has decided so.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import Provider, infer_provider

from perdure.core.errors import ConfigurationError

_NOTHING_TO_SWITCH_OFF = frozenset(
    {"pydantic_ai.models.huggingface", "pydantic_ai.models.system_one", "pydantic_ai.models.mcp_sampling"}
)
"""Modules of models whose clients make one request a call: read in pydantic-ai 2.68 and the SDKs of its time."""


def leaves(model: Model) -> Iterator[Model]:
    """Return the models that make requests: those of a chain, and what wrappers are around."""
    if isinstance(model, FallbackModel):
        for each in model.models:
            yield from leaves(each)
    elif isinstance(model, WrapperModel):
        yield from leaves(model.wrapped)
    else:
        yield model


def takes_max_retries(model: Model) -> bool:
    """Say whether `max_retries` reaches the SDK of at least one model that makes requests."""
    return any("max_retries" not in leaf.unsupported_settings for leaf in leaves(model))


def provider_factory(name: str) -> Callable[[str], Provider[Any]]:
    """Return how the provider of a model's name is made, its own retries off."""
    return {"bedrock": _bedrock, "xai": _xai}.get(name.partition(":")[0], infer_provider)


def refuse_unseen_retries(name: str, model: Model) -> None:
    """Refuse a model whose SDK may make a request more often than it is asked to.

    Raises:
        ConfigurationError: the model, and what to hand in instead.
    """
    for leaf in leaves(model):
        if "max_retries" not in leaf.unsupported_settings:
            continue
        modules = {each.__module__ for each in type(leaf).__mro__}
        if "pydantic_ai.models.bedrock" in modules:
            _refuse_trying_client(name, leaf)
        elif "pydantic_ai.models.xai" in modules:
            _refuse_trying_channel(name, leaf)
        elif type(leaf).__module__.startswith("pydantic_ai.") and not modules & _NOTHING_TO_SWITCH_OFF:
            raise ConfigurationError(
                "model",
                f"{name!r} cannot be opened: the retries of its SDK cannot be switched off through pydantic-ai, and "
                "each attempt must be one request; use another provider of this model",
            )


# --- bedrock ----------------------------------------------------------------------------------------------------


def _bedrock(_: str) -> Provider[Any]:
    import boto3  # noqa: PLC0415 — only who asks for the provider has its SDK
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415
    from pydantic_ai.providers.bedrock import BedrockProvider  # noqa: PLC0415

    provider = BedrockProvider()  # finds region and timeouts, and says what is missing
    trying, found = provider.client, provider.client.meta
    # Keys and the endpoint are found by boto3 itself, where the first client found them.
    keys = get_session()
    provider.client = boto3.Session(botocore_session=keys).client(
        "bedrock-runtime",
        region_name=found.region_name,
        config=Config(
            read_timeout=found.config.read_timeout,
            connect_timeout=found.config.connect_timeout,
            retries={"total_max_attempts": 1},
        ),
    )
    trying.close()
    if keys.get_credentials() is None and keys.get_auth_token(signing_name="bedrock") is None:
        raise UserError(
            "AWS has no key for it; set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE"
        )
    return provider


def _refuse_trying_client(name: str, model: Any) -> None:
    attempts = model.client.meta.config.retries.get("total_max_attempts")
    if attempts != 1:
        raise ConfigurationError(
            "model",
            f"{name!r} cannot be opened: its boto3 client tries a request up to {attempts or 'several'} times, "
            "and each attempt must be one request; make the client with botocore's "
            f"Config(retries={{'total_max_attempts': 1}}), or name the model as 'bedrock:{model.model_name}'",
        )


# --- xai --------------------------------------------------------------------------------------------------------


def _xai(_: str) -> Provider[Any]:
    from perdure.models.one_request_xai import OneRequestXaiProvider  # noqa: PLC0415 — needs the SDK

    return OneRequestXaiProvider()


def _refuse_trying_channel(name: str, model: Model) -> None:
    from perdure.models.one_request_xai import OneRequestXaiProvider  # noqa: PLC0415 — there, since the model is

    if not isinstance(model.provider, OneRequestXaiProvider):
        raise ConfigurationError(
            "model",
            f"{name!r} cannot be opened: its gRPC channel calls a server that is unavailable up to five times, which "
            "cannot be seen or changed once the channel is open, and each attempt must be one request; name the "
            f"model as 'xai:{model.model_name}'",
        )
