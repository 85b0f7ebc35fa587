"""Push notifications of one server: the configurations that clients keep, and the deliverer that runs beside.

push_configs.py    the operations             push_delivery.py   what is due, in order, again until taken
push_secrets.py    sealed at rest             push_lease.py      whose turn it is
push_addresses.py  where they may go          push_posting.py    one notification, one POST
"""

import functools

from perdure.a2a.push_configs import PushConfigs, target_of
from perdure.a2a.push_delivery import Deliverer, Means
from perdure.a2a.push_lease import Turn
from perdure.a2a.push_posting import Poster
from perdure.a2a.push_secrets import seals_of
from perdure.a2a.tasks import TaskReader
from perdure.app.app import App, worker_identity


def pushing(app: App) -> PushConfigs | None:
    """Return what keeps configurations, and deliver until the app closes. All doors of an app share it.

    None where nothing can be sealed, and so nothing is offered: several hosts share the store, and
    `PERDURE_SECRETS_KEY` names no key for all of them. Raises `ConfigurationError` for a key that is none.
    """
    return app.companions.once(PushConfigs, lambda: _begun(app))


def _begun(app: App) -> PushConfigs | None:
    seals = seals_of(app.settings)
    if seals is None:
        return None
    reader = TaskReader(app)
    poster = Poster(app.settings.push_networks)
    means = Means(
        store=app.store,
        reader=reader,
        key_id=seals.key_id,
        turn=Turn(app.store.pushes, seals.key_id, worker_identity()),
        target=functools.partial(target_of, seals),
        post=poster.post,
    )
    deliverer = Deliverer(means)
    app.companions.start(_beside(deliverer, poster), "perdure: push notifications")
    return PushConfigs(app, reader, seals, deliverer)


async def _beside(deliverer: Deliverer, poster: Poster) -> None:
    try:
        await deliverer.run()
    finally:
        await poster.close()
