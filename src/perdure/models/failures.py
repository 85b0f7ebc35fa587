"""How a provider's failure becomes a `ModelError`: may the same request succeed later, and when.

pydantic-ai has sorted what the SDKs raise, also errors that a provider reports inside an open stream. What is left is
one question. Retryable: 408, 409, 429 and every 5xx (529 too), no or a broken connection, timeouts, replies that make
no sense. Not retryable: what names the request, the key or the account (400, 401, 403, 404, 413, 422, an exhausted
quota even when it comes as a 429), and what this adapter cannot express to the model.

Of what is not retryable, another model may do all but what names the request itself: one that is malformed, too long or
refused for its content.
"""

from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)

from perdure.core import limits
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import ModelError

_RETRYABLE_STATUSES = frozenset({408, 409, 429})
_REFUSED_REQUESTS = frozenset({400, 413, 422})
_SERVER_ERRORS_FROM = 500

ProviderFailure = ModelAPIError | UnexpectedModelBehavior | FallbackExceptionGroup


def model_error(error: ProviderFailure, model: str, secret: str | None) -> ModelError:
    """Return the error to raise for what `model` did; `secret`, the key in use, is masked in its text."""
    if isinstance(error, FallbackExceptionGroup):
        return _all_failed(error, model, secret)
    text = f"{model}: {_what(error)}"
    if secret:
        text = text.replace(secret, "***")
    return ModelError(
        cut_text(safe_text(text), limits.PROBLEM_BYTES_MAX, " … (cut)"),
        retryable=_retryable(error),
        retry_after_s=error.retry_after if isinstance(error, ModelAPIError) else None,
        elsewhere=_elsewhere(error),
    )


def _retryable(error: ModelAPIError | UnexpectedModelBehavior) -> bool:
    if isinstance(error, ModelQuotaExceededError):
        return False
    if isinstance(error, ModelHTTPError):
        return error.status_code in _RETRYABLE_STATUSES or error.status_code >= _SERVER_ERRORS_FROM
    return not isinstance(error, ModelRequestRejectedError)


def _elsewhere(error: ModelAPIError | UnexpectedModelBehavior) -> bool:
    """Say whether another model may answer: not where the request was refused, and not whoever sent it."""
    if isinstance(error, ModelQuotaExceededError | ModelAuthenticationError | ModelNotFoundError):
        return True
    if isinstance(error, ModelHTTPError):
        return error.status_code not in _REFUSED_REQUESTS
    return not isinstance(error, ModelRequestRejectedError)


def _what(error: ModelAPIError | UnexpectedModelBehavior) -> str:
    """Say what the provider said: its own message where the body has one, the whole text otherwise."""
    if not isinstance(error, ModelHTTPError):
        return f"{error}{_underneath(error)}"
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    said = body.get("message") if isinstance(body, dict) else body
    hint = f" ({error.hint})" if error.hint else ""
    return f"HTTP {error.status_code}: {said or 'no explanation'}{hint}"


def _underneath(error: BaseException) -> str:
    """Return the last cause's own words where there are any: the SDKs say "Connection error." for all of them."""
    if not isinstance(error, ModelConnectionError):
        return ""
    cause: BaseException = error
    while (further := cause.__cause__ or cause.__context__) is not None:
        cause = further
    said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    return "" if cause is error else f" ({said})"


def _all_failed(group: FallbackExceptionGroup, model: str, secret: str | None) -> ModelError:
    """A chain of fallbacks failed: worth another try when any of its models is, as soon as the first of those is."""
    errors = [
        model_error(error, model, secret)
        for error in group.exceptions
        if isinstance(error, ModelAPIError | UnexpectedModelBehavior | FallbackExceptionGroup)
    ]
    hopeful = [error for error in errors if error.retryable]
    waits = [error.retry_after_s for error in hopeful]
    known = [wait for wait in waits if wait is not None]
    text = "; ".join(str(error) for error in errors) or f"{model}: {group}"
    return ModelError(
        cut_text(text, limits.PROBLEM_BYTES_MAX, " … (cut)"),
        retryable=bool(hopeful),
        # A model that names no wait may be tried at once.
        retry_after_s=min(known) if known and len(known) == len(waits) else None,
        elsewhere=any(error.elsewhere for error in errors) or not errors,
    )
