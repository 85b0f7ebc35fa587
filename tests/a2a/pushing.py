"""What push tests share: a bench whose agent may push to this machine, and configurations over JSON-RPC."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from perdure import App
from perdure.a2a.push_configs import PushConfigs, target_of
from perdure.a2a.push_delivery import Deliverer, Means
from perdure.a2a.push_lease import Turn
from perdure.a2a.push_posting import Poster
from perdure.a2a.push_secrets import Seals, seals_of
from perdure.a2a.tasks import TaskReader
from perdure.app.companions import Companions
from perdure.core.agent import RetryPolicy
from tests.a2a.desk import Desk, Json, sending
from tests.temporal.bench import Bench

LOOPBACK = ip_network("127.0.0.0/8")


def open_to_loopback(bench: Bench) -> Bench:
    bench.settings = replace(bench.settings, push_networks=(LOOPBACK,))
    return bench


async def create(client: Desk, task_id: str, url: str, **fields: Any) -> Json:
    return await client.result("CreateTaskPushNotificationConfig", {"taskId": task_id, "url": url, **fields})


def sending_to(url: str, text: str = "hello", *, wait: bool = True, **config: Any) -> Json:
    """Return a message that brings a push configuration."""
    params = sending(text, wait=wait)
    params["configuration"]["taskPushNotificationConfig"] = {"url": url, **config}
    return params


def seals(app: App) -> Seals:
    found = seals_of(app.settings)
    assert found is not None
    return found


@contextlib.asynccontextmanager
async def delivering(app: App, holder: str, retries: RetryPolicy, lease_s: float) -> AsyncIterator[PushConfigs]:
    """Deliver with a patience and a lease of the test's own; `app` must be served without push."""
    key, reader, poster = seals(app), TaskReader(app), Poster(app.settings.push_networks)
    turn = Turn(app.store.pushes, key.key_id, holder, lease_s)
    means = Means(app.store, reader, key.key_id, turn, lambda kept: target_of(key, kept), poster.post, retries)
    deliverer, companions = Deliverer(means), Companions()
    companions.start(deliverer.run(), holder)
    try:
        yield PushConfigs(app, reader, key, deliverer)
    finally:
        await companions.close()
        await poster.close()


async def state_is(app: App, task_id: str, config_id: str, state: str) -> bool:
    kept = await app.store.pushes.find(task_id, config_id)
    return kept is not None and kept.state == state
