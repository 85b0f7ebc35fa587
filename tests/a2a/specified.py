"""What the rows of the specification's table stand on: one served agent per module, asked on every binding.

A test takes `ask` and is run on JSON-RPC, HTTP+JSON and gRPC; what only one binding has takes `served`. A module may
set OPTIONS, the options of its `perdure serve`.
"""

import itertools
from collections.abc import Iterator
from functools import cached_property

import pytest

from tests.a2a.bindings import BINDINGS, Binding, Refused
from tests.a2a.house import House, Json

_numbers = itertools.count(1)


class Served:
    """A served agent."""

    def __init__(self, house: House, *options: str) -> None:
        self.house = house
        house.open("--grpc-port", "0", *options)
        self._bindings: dict[str, Binding] = {}

    @cached_property
    def card(self) -> Json:
        card: Json = self.house.client.get("/.well-known/agent-card.json").json()
        return card

    def binding(self, name: str) -> "Ask":
        if name not in self._bindings:
            self._bindings[name] = BINDINGS[name](self.card)
        return Ask(name, self._bindings[name])

    def close(self) -> None:
        for binding in self._bindings.values():
            binding.close()


class Ask:
    """Asks on one binding."""

    def __init__(self, name: str, binding: Binding) -> None:
        self.name = name
        self.call = binding.call
        self.stream = binding.stream

    def send(self, text: str = "hello", *, wait: bool = True, **message: object) -> Json:
        """Send a message; return its task."""
        task: Json = self.call("SendMessage", sending(text, wait=wait, **message))["task"]
        return task

    def get(self, task: Json, **fields: object) -> Json:
        return self.call("GetTask", {"id": task["id"], **fields})

    def refused(self, method: str, params: Json, **headers: str) -> Refused:
        """Return how this, which must be refused, is."""
        streams = method in {"SendStreamingMessage", "SubscribeToTask"}
        with pytest.raises(Refused) as refused:
            _ = list(self.stream(method, params, **headers)) if streams else self.call(method, params, **headers)
        return refused.value


def sending(text: str = "hello", *, wait: bool = True, **message: object) -> Json:
    """Return the parameters of a SendMessage; each message has an id of its own."""
    whole = {"messageId": f"m-{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return {"message": whole, "configuration": {"returnImmediately": not wait}}


def state(task: Json) -> str:
    name: str = task["status"]["state"]
    return name.removeprefix("TASK_STATE_")


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    house = House(tmp_path_factory.mktemp("served"))
    try:
        served = Served(house, *getattr(request.module, "OPTIONS", ()))
        yield served
        served.close()
    finally:
        house.close()


@pytest.fixture(params=sorted(BINDINGS))
def ask(request: pytest.FixtureRequest, served: Served) -> Ask:
    return served.binding(request.param)
