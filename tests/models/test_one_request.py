"""One request per attempt, counted by a server, for the models whose SDKs pydantic-ai cannot tell not to try again.

`test_wire_failures.py` counts the same for those that it can tell.
"""

import ast
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic_ai.models
import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel as EchoModel
from pydantic_ai.models.wrapper import WrapperModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.core.errors import ConfigurationError, ModelError
from perdure.models import open_model
from perdure.models.adapter import ProviderModel
from tests.models.talk import ask, user
from tests.models.wire import listening

pytestmark = pytest.mark.slow

BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
STATUSES = [429, 500, 503]
REGION = "eu-central-1"
NOVA = "amazon.nova-lite-v1:0"


@dataclass
class Busy:
    """A server that never answers a question, and counts."""

    url: str = ""
    status: int = 503
    paths: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)


@pytest.fixture
def busy() -> Iterator[Busy]:
    counted = Busy()

    async def refuse(request: Request) -> Response:
        counted.paths.append(request.url.path)
        counted.authorizations.append(request.headers.get("authorization", ""))
        return JSONResponse({"message": "busy", "error": "busy"}, counted.status)

    with listening(Starlette(routes=[Route("/{path:path}", refuse, methods=["POST"])])) as counted.url:
        yield counted


@asynccontextmanager
async def opened(model: str | Model, *, stream: bool = False) -> AsyncIterator[ProviderModel]:
    model_port = open_model(model, stream=stream)
    assert isinstance(model_port, ProviderModel)
    yield model_port
    await model_port.close()


async def _ask_in_vain(model: str | Model, *, stream: bool = False) -> ModelError:
    async with opened(model, stream=stream) as port:
        with pytest.raises(ModelError) as caught:
            await ask(port, user("Hello"))
    return caught.value


# --- bedrock ----------------------------------------------------------------------------------------------------


@pytest.fixture
def aws(busy: Busy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Busy:
    pytest.importorskip("boto3", reason="the extra pydantic-ai-slim[bedrock] is not installed")
    for name, value in {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": busy.url,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_MAX_ATTEMPTS": "5",  # what the environment asks of others does not hold here
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return busy


def _client(**config: Any) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client("bedrock-runtime", region_name=REGION, config=Config(**config))


def _bedrock(**config: Any) -> Model:
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    return BedrockConverseModel(NOVA, provider=BedrockProvider(bedrock_client=_client(**config)))


@BOTH_WAYS
async def test_bedrock_is_asked_once(aws: Busy, stream: bool) -> None:
    async with opened(f"bedrock:{NOVA}", stream=stream) as model:
        for asked, status in enumerate(STATUSES, start=1):
            aws.status = status
            with pytest.raises(ModelError) as caught:
                await ask(model, user("Hello"))
            assert caught.value.retryable
            assert len(aws.paths) == asked
    assert all(NOVA in path.replace("%3A", ":") for path in aws.paths)
    assert aws.authorizations[0].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")


async def test_bedrock_is_asked_with_its_own_key(aws: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import InvalidEndpointConfigurationError

    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-of-the-test")
    async with opened(f"bedrock:{NOVA}") as model:
        # What it does with the key: it keeps it from a server without TLS.
        with pytest.raises(InvalidEndpointConfigurationError, match="Bearer"):
            await ask(model, user("Hello"))
    assert aws.paths == []


async def test_a_client_that_asks_once_can_be_given(aws: Busy) -> None:
    await _ask_in_vain(_bedrock(retries={"total_max_attempts": 1}))
    assert len(aws.paths) == 1


async def test_a_client_that_asks_twice_would_have_done_so(aws: Busy) -> None:
    """The control: without the refusal below, the server counts two."""
    trying = ProviderModel("trying", _bedrock(retries={"total_max_attempts": 2}), stream=False)
    with pytest.raises(ModelError):
        await ask(trying, user("Hello"))
    assert len(aws.paths) == 2


@pytest.mark.parametrize("around", [lambda model: model, lambda model: FallbackModel(EchoModel(), model), WrapperModel])
def test_a_client_that_tries_again_is_refused(aws: Busy, around: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"up to 5 times.*total_max_attempts.*bedrock:amazon") as caught:
        open_model(around(_bedrock()))
    assert caught.value.field == "model"


def test_bedrock_through_a_gateway_is_refused_while_it_tries_again(aws: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYDANTIC_AI_GATEWAY_API_KEY", "key-of-the-test")
    monkeypatch.setenv("PYDANTIC_AI_GATEWAY_BASE_URL", aws.url)
    with pytest.raises(ConfigurationError, match="total_max_attempts"):
        open_model(f"gateway/bedrock:{NOVA}")


def test_bedrock_without_a_region_says_so(aws: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ConfigurationError, match="region"):
        open_model(f"bedrock:{NOVA}")


def test_bedrock_without_a_key_says_so(aws: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ConfigurationError, match="AWS_BEARER_TOKEN_BEDROCK"):
        open_model(f"bedrock:{NOVA}")


# --- huggingface ------------------------------------------------------------------------------------------------


@BOTH_WAYS
async def test_huggingface_is_asked_once(busy: Busy, stream: bool) -> None:
    pytest.importorskip("huggingface_hub", reason="the extra pydantic-ai-slim[huggingface] is not installed")
    from pydantic_ai.models.huggingface import HuggingFaceModel
    from pydantic_ai.providers.huggingface import HuggingFaceProvider

    provider = HuggingFaceProvider(base_url=f"{busy.url}/v1", api_key="key-of-the-test")
    async with opened(HuggingFaceModel("org/model", provider=provider), stream=stream) as model:
        for asked, status in enumerate(STATUSES, start=1):
            busy.status = status
            with pytest.raises(ModelError):
                await ask(model, user("Hello"))
            assert len(busy.paths) == asked


# --- xai --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _unavailable() -> AsyncIterator[tuple[str, list[str]]]:
    """A gRPC server that is unavailable for every call, and counts."""
    import grpc

    calls: list[str] = []

    class Refuse(grpc.GenericRpcHandler):  # type: ignore[misc]  # it comes without types
        def service(self, details: Any) -> Any:
            async def refuse(_: bytes, context: Any) -> bytes:
                calls.append(details.method)
                await context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
                return b""

            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Refuse(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}", calls
    finally:
        await server.stop(None)


@BOTH_WAYS
async def test_xai_is_asked_once(stream: bool) -> None:
    pytest.importorskip("xai_sdk", reason="the extra pydantic-ai-slim[xai] is not installed")
    from pydantic_ai.models.xai import XaiModel

    from perdure.models.one_request_xai import OneRequestXaiProvider

    async with _unavailable() as (host, calls):
        provider = OneRequestXaiProvider(api_key="key-of-the-test", api_host=host, use_insecure_channel=True)
        error = await _ask_in_vain(XaiModel("grok-4.3", provider=provider), stream=stream)
    assert error.retryable
    assert len(calls) == 1


async def test_the_sdks_own_channel_would_have_asked_again() -> None:
    """The control: what the refusal below keeps away."""
    xai_sdk = pytest.importorskip("xai_sdk", reason="the extra pydantic-ai-slim[xai] is not installed")
    from pydantic_ai.models.xai import XaiModel
    from pydantic_ai.providers.xai import XaiProvider

    async with _unavailable() as (host, calls):
        client = xai_sdk.AsyncClient(api_key="key-of-the-test", api_host=host, use_insecure_channel=True)
        trying = ProviderModel("trying", XaiModel("grok-4.3", provider=XaiProvider(xai_client=client)), stream=False)
        with pytest.raises(ModelError):
            await ask(trying, user("Hello"))
        await client.close()
    assert len(calls) == 5


def test_xai_by_name_is_ours_and_with_another_channel_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xai_sdk", reason="the extra pydantic-ai-slim[xai] is not installed")
    from pydantic_ai.models.xai import XaiModel

    monkeypatch.setenv("XAI_API_KEY", "key-of-the-test")
    assert open_model("xai:grok-4.3").name == "xai:grok-4.3"
    with pytest.raises(ConfigurationError, match=r"name the model as 'xai:grok-4\.3'"):
        open_model(XaiModel("grok-4.3"))


# --- all --------------------------------------------------------------------------------------------------------


def test_every_model_that_cannot_be_told_is_known() -> None:
    """A new release of pydantic-ai may have one more; then `one_request.py` has to settle it."""
    folder = Path(pydantic_ai.models.__file__).parent
    found = {
        path.relative_to(folder).parts[0].removesuffix(".py")
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == ["unsupported_settings"]
        and "'max_retries'" in ast.unparse(node.value)
    }
    assert found == {"bedrock", "xai", "huggingface", "system_one", "mcp_sampling"}


def test_a_model_of_pydantic_ai_that_is_not_known_is_refused() -> None:
    unknown = type(
        "Unknown",
        (EchoModel,),
        {"unsupported_settings": frozenset({"max_retries"}), "__module__": "pydantic_ai.models.unknown"},
    )
    with pytest.raises(ConfigurationError, match="another provider"):
        open_model(unknown())
