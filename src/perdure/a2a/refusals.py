"""What is said at the gate to a request that does not come in: A2A's error forms, for errors that A2A has no words for.

Each class has its HTTP status, its gRPC status and its JSON-RPC code, registered beside the SDK's own so that every
binding says it in its way. The codes are of the range that JSON-RPC leaves to servers, clear of those that A2A took.
"""

from collections.abc import Mapping

from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.request_handlers.response_helpers import EXCEPTION_MAP, build_error_response
from a2a.utils import errors as sdk
from a2a.utils.error_handlers import build_rest_error_payload
from starlette.responses import JSONResponse


class RefusedError(sdk.A2AError):
    """Refused before anything of it reached the agent; `headers` go with the answer."""

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message=message)
        self.headers = dict(headers or {})


class UnauthenticatedError(RefusedError):
    """It is not known who calls."""


class PermissionDeniedError(RefusedError):
    """It is known who calls, and that is not enough; or what may not call at all does (another site's page)."""


class TooManyError(RefusedError):
    """One principal asks too much at once."""


class OverloadedError(RefusedError):
    """All together ask too much at once."""


class TooLargeError(RefusedError):
    """The body is larger than is taken."""


class TooSlowError(RefusedError):
    """The body took longer than is waited for."""


class MalformedError(RefusedError):
    """The body is of a shape that nothing reads."""


def _register(kind: type[RefusedError], code: int, http: int, status: str, reason: str) -> None:
    mapping = sdk.ErrorMapping(http, status, reason)
    sdk.A2A_ERROR_MAPPING[kind] = mapping
    sdk.A2A_ERROR_REASONS[kind] = reason
    sdk.A2A_REASON_TO_ERROR.setdefault(reason, kind)
    sdk.JSON_RPC_ERROR_CODE_MAP[kind] = code
    EXCEPTION_MAP[kind] = JSONRPCError


_register(UnauthenticatedError, -32061, 401, "UNAUTHENTICATED", "UNAUTHENTICATED")
_register(PermissionDeniedError, -32062, 403, "PERMISSION_DENIED", "PERMISSION_DENIED")
_register(TooManyError, -32063, 429, "RESOURCE_EXHAUSTED", "TOO_MANY_REQUESTS")
_register(OverloadedError, -32064, 503, "UNAVAILABLE", "SERVICE_UNAVAILABLE")
_register(TooLargeError, -32065, 413, "INVALID_ARGUMENT", "REQUEST_TOO_LARGE")
_register(TooSlowError, -32066, 408, "DEADLINE_EXCEEDED", "REQUEST_TOO_SLOW")
_register(MalformedError, -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST")


def refusal(
    error: sdk.A2AError, *, json_rpc: bool, request_id: str | int | None, headers: Mapping[str, str] | None
) -> JSONResponse:
    """Return the answer that says so, in the form of the binding."""
    told = {
        **(headers or {}),
        **(error.headers if isinstance(error, RefusedError) else {}),
        "Cache-Control": "no-store",
    }
    body = build_error_response(request_id, error) if json_rpc else build_rest_error_payload(error)
    return JSONResponse(body, status_code=sdk.A2A_ERROR_MAPPING[type(error)].http_code, headers=told)
