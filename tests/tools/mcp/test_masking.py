"""What a server repeats of the secrets that it was given: nothing of it is told, asked, or handed over."""

import base64
from typing import Any

import mcp_types as types
import pytest

from perdure.core.artifacts import Artifact, Asks, File, WithFiles
from perdure.tools.environment import Environment
from tests.tools.mcp.scripted import Scripted
from tests.tools.mcp.shop import call

SECRET = "topsecret-123456"


@pytest.fixture
def environment() -> Environment:
    given = Environment({"SEC": SECRET})
    given.filled("the test", "${SEC}")
    return given


async def test_what_is_handed_over_is_masked_as_what_is_told(environment: Environment) -> None:
    for_user = types.Annotations(audience=["user"])
    blob = types.BlobResourceContents(uri=f"shop://{SECRET}", blob=base64.b64encode(b"file").decode())
    given = types.CallToolResult(
        content=[
            types.TextContent(text=f"for you: {SECRET}", annotations=for_user),
            types.EmbeddedResource(resource=blob, annotations=for_user),
        ]
    )
    made = await Scripted(given, environment=environment).tool().invoke({}, call())
    assert isinstance(made, WithFiles)
    assert isinstance(made.artifact, Artifact)
    file = File("application/octet-stream", "${SEC}", b"file")
    assert (made.text, made.files) == ("for you: ${SEC}", (file,))
    assert made.artifact.parts == ("for you: ${SEC}", file)


FORM = {"type": "object", "properties": {name: {"type": "string", "title": SECRET} for name in ("a", "b")}}


@pytest.mark.parametrize(
    "params",
    [
        types.ElicitRequestURLParams(message="Pay.", url=f"https://pay.example/?t={SECRET}"),
        types.ElicitRequestFormParams(message=f"As {SECRET}?", requested_schema=FORM),
        types.ElicitRequestFormParams(
            message="Which?", requested_schema={"type": "object", "properties": {"x": {"enum": [SECRET]}}}
        ),
    ],
)
async def test_a_question_is_masked_and_what_is_kept_for_the_server_is_not(
    environment: Environment, params: Any
) -> None:
    given = types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=params)}, request_state=SECRET)
    tool = Scripted(given, environment=environment).tool()
    asks = await tool.invoke({}, call())
    assert isinstance(asks, Asks)
    again = await tool.resume({}, call(attempt=2), asks.kept, "1")
    assert isinstance(again, Asks)
    for each in (asks, again):
        shown = f"{each.question} {each.choices} {each.form}"
        assert (SECRET in shown, "${SEC}" in shown) == (False, True)
        assert isinstance(each.kept, dict)
        assert each.kept["state"] == SECRET
