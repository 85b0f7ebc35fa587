"""One service per module: its log grows, tests look at what they added."""

from collections.abc import Iterator

import pytest

from tests.temporal.conftest import bench, server
from tests.tools.http.running import Service, running

__all__ = ["bench", "server"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture
def service(shared: Service) -> Service:
    """Give the module's service, with an empty log and alive."""
    shared.log.write_text("")
    return shared
