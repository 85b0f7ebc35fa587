"""What an operator leaves out, and what is refused before anything is started."""

import socket

import pytest

from perdure.app.offer import OPTIONAL, Offer
from tests.a2a.house import House


def test_what_is_left_out_is_not_offered() -> None:
    nothing = Offer().without(OPTIONAL)
    assert not any((nothing.streaming, nothing.push_notifications, nothing.extended_card, nothing.v0_3))
    assert Offer().without(()) == Offer()
    assert Offer().without(["push"]) == Offer(push_notifications=False)


@pytest.mark.slow
def test_what_cannot_be_left_out_is_named(house: House) -> None:
    assert house.command("serve", house.agent, "--off", "sending").wait(30) == 2
    assert "--off: 'sending' is nothing that can be left out; use streaming, push" in house.said
    assert not (house.folder / "home" / "store.db").exists()


@pytest.mark.slow
def test_a_port_of_grpc_that_is_taken_is_named(house: House) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert house.command("serve", house.agent, "--port", "0", "--grpc-port", port).wait(30) == 2
    assert f"--grpc-port: 127.0.0.1:{port} cannot be used; give another" in house.said
    assert not (house.folder / "home" / "store.db").exists()
