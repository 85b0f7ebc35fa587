"""The four operations on a task's push configurations (A2A 3.1.7 to 3.1.10), and the one within a sent message.

A configuration belongs to its task and is seen by who sees that. What a client gives is checked before anything is
kept, and returned to it as it gave it; in the store it is sealed.

One that comes with a message is kept once the message is accepted, and delivers from the event that took the message
in: killed in between, the same message sent again keeps it, and nothing is missed. Refused: to keep it first. Where the
message is refused then, something has changed after all. What can be refused is refused before; what fails afterwards
is no reason to say that the message was not taken: its sender would send it again.

One without an id is named by where it goes, so that a client that gives the same with each message has one of them.
"""

import asyncio
import json
import logging
import re
from dataclasses import asdict, fields
from typing import Final

from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import TaskNotFoundError

from perdure.a2a.caller import Caller
from perdure.a2a.errors import invalid
from perdure.a2a.push_addresses import checked_url
from perdure.a2a.push_delivery import Deliverer
from perdure.a2a.push_posting import Target
from perdure.a2a.push_secrets import Seals
from perdure.a2a.sending import Accepted
from perdure.a2a.tasks import Found, TaskReader
from perdure.app.app import App
from perdure.app.clock import now_ms
from perdure.core import push_limits
from perdure.core.errors import Diverged, InvalidInput, StoreUnavailable
from perdure.core.pushes import PushConfig

_log = logging.getLogger(__name__)

INLINE: Final = "configuration.taskPushNotificationConfig."
"""Where a message has a configuration, as A2A's JSON names it."""

_ID_DIGITS: Final = 32
_SCHEME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VISIBLE: Final = re.compile(r"[\x20-\x7e]*")


class PushConfigs:
    """Keeps configurations of one agent's tasks."""

    def __init__(self, app: App, reader: TaskReader, seals: Seals, deliverer: Deliverer) -> None:
        self._app = app
        self._reader = reader
        self._seals = seals
        self._deliverer = deliverer

    async def create(self, given: TaskPushNotificationConfig, caller: Caller) -> TaskPushNotificationConfig:
        """Keep a configuration; it delivers what happens from now on. One of the same id is replaced, and goes on."""
        if not given.task_id:
            raise invalid("taskId", "is missing; name the task")
        found = await self._reader.find(given.task_id, caller)
        self.check(given, "")
        return self._shown(await self._keep(found, given, None))

    async def get(self, params: GetTaskPushNotificationConfigRequest, caller: Caller) -> TaskPushNotificationConfig:
        """Return a configuration."""
        await self._reader.find(params.task_id, caller)
        kept = await self._app.store.pushes.find(params.task_id, params.id) if _is_id(params.id) else None
        if kept is None:
            raise TaskNotFoundError(
                message=f"task {params.task_id!r} has no push configuration {params.id!r}",
                data={"taskId": params.task_id, "id": params.id},
            )
        return self._shown(kept)

    async def listed(
        self, params: ListTaskPushNotificationConfigsRequest, caller: Caller
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return a task's configurations in the order of their ids; a page goes on after the id that is its token."""
        await self._reader.find(params.task_id, caller)
        if params.page_size < 0:
            raise invalid("pageSize", f"is {params.page_size}; give 1 or more, or leave it out for all")
        if params.page_token and not _is_id(params.page_token):
            raise invalid("pageToken", "is none of this server's; give the nextPageToken of the page before, unchanged")
        kept = [
            each for each in await self._app.store.pushes.of_task(params.task_id) if each.config_id > params.page_token
        ]
        shown = kept[: params.page_size or len(kept)]
        return ListTaskPushNotificationConfigsResponse(
            configs=[self._shown(each) for each in shown],
            next_page_token=shown[-1].config_id if len(shown) < len(kept) else "",
        )

    async def delete(self, params: DeleteTaskPushNotificationConfigRequest, caller: Caller) -> None:
        """Delete a configuration. When this returns this process sends nothing more for it; again changes nothing."""
        await self._reader.find(params.task_id, caller)
        if _is_id(params.id):
            await self._app.store.pushes.delete(params.task_id, params.id, now_ms())
            await self._deliverer.forget(params.task_id, params.id)

    async def check_of(self, request: SendMessageRequest, caller: Caller) -> None:
        """Raise where the configuration that comes with a message, if there is one, could not be kept.

        Ask before the message is taken in.
        """
        if not request.configuration.HasField("task_push_notification_config"):
            return
        given = request.configuration.task_push_notification_config
        self.check(given, INLINE)
        if not request.message.task_id:
            return  # a new task has room
        task_id = (await self._reader.find(request.message.task_id, caller)).header.task_id
        standing = await self._app.store.pushes.of_task(task_id)
        there = given.id in {each.config_id for each in standing} or self._same(given, standing) is not None
        if not there and len(standing) >= push_limits.CONFIGS_PER_TASK_MAX:
            problem = f"would be one more than the {push_limits.CONFIGS_PER_TASK_MAX} that a task can have; delete one"
            raise invalid(f"{INLINE}id", problem)

    async def keep_of(self, request: SendMessageRequest, accepted: Accepted) -> str:
        """Keep the configuration that came with a message which is accepted, if there was one.

        Return why it is not kept, nothing where it is: the message stays accepted, so this raises nothing.
        """
        if not request.configuration.HasField("task_push_notification_config"):
            return ""
        given, why = request.configuration.task_push_notification_config, "the store does not answer"
        try:
            async with asyncio.timeout(push_limits.KEEP_WITHIN_S):
                while True:
                    try:
                        await self._keep(accepted.found, given, accepted.after)
                    except StoreUnavailable as error:
                        why = str(error)
                        await asyncio.sleep(push_limits.KEEP_PAUSE_S)
                    else:
                        return ""
        except TimeoutError:
            pass
        except (InvalidInput, Diverged) as error:
            why = str(error)
        _log.warning("a push configuration of task %s was not kept: %s", accepted.found.header.task_id, why)
        return "The message was taken in and its push configuration was not kept; create it again by itself."

    def check(self, given: TaskPushNotificationConfig, prefix: str) -> None:
        """Raise for what could not be delivered to; fields are named with `prefix` before them."""
        if given.id and not _is_id(given.id):
            raise invalid(f"{prefix}id", f"must have at most {push_limits.ID_CHARS_MAX} visible ASCII characters")
        checked_url(f"{prefix}url", given.url, self._app.settings.push_networks)
        authentication = given.authentication
        for field, secret in (("token", given.token), ("authentication.credentials", authentication.credentials)):
            if len(secret) > push_limits.SECRET_CHARS_MAX or not _VISIBLE.fullmatch(secret) or secret != secret.strip():
                raise invalid(
                    f"{prefix}{field}",
                    f"must fit a header: at most {push_limits.SECRET_CHARS_MAX} visible ASCII characters",
                )
        if given.HasField("authentication") and not _SCHEME.fullmatch(authentication.scheme):
            raise invalid(f"{prefix}authentication.scheme", "must name an HTTP authentication scheme, as in Bearer")

    async def _keep(self, found: Found, given: TaskPushNotificationConfig, after: int | None) -> PushConfig:
        task_id = found.header.task_id
        same = self._same(given, await self._app.store.pushes.of_task(task_id))
        if same is not None and same.state != "given_up":
            return same  # saved again, what is on its way would count as another one's
        name = given.id or (self._named(task_id, given) if same is None else same.config_id)
        config = PushConfig(
            task_id=task_id,
            config_id=name,
            key_id=self._seals.key_id,
            sealed=self._seals.seal(_text(_target(given)), task_id, name),
            next_at_ms=now_ms(),
        )
        kept = await self._app.store.pushes.save(config, found.header, after, now_ms())
        self._deliverer.kick()
        return kept

    def _same(self, given: TaskPushNotificationConfig, standing: tuple[PushConfig, ...]) -> PushConfig | None:
        """Return the configuration that one without an id is already: the one that goes to the same place."""
        if given.id:
            return None
        own = (each for each in standing if each.key_id == self._seals.key_id)
        return next((each for each in own if target_of(self._seals, each) == _target(given)), None)

    def _named(self, task_id: str, given: TaskPushNotificationConfig) -> str:
        return self._seals.named(_text(_target(given)), task_id)[:_ID_DIGITS]

    def _shown(self, kept: PushConfig) -> TaskPushNotificationConfig:
        target = target_of(self._seals, kept)
        shown = TaskPushNotificationConfig(task_id=kept.task_id, id=kept.config_id, url=target.url, token=target.token)
        if target.scheme:
            shown.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme, credentials=target.credentials))
        return shown


def _target(given: TaskPushNotificationConfig) -> Target:
    return Target(given.url, given.token, given.authentication.scheme, given.authentication.credentials)


def _text(target: Target) -> bytes:
    return json.dumps(asdict(target)).encode()


def target_of(seals: Seals, kept: PushConfig) -> Target:
    """Return what was sealed; raises `Diverged` where it does not open."""
    said = json.loads(seals.open(kept.sealed, kept.task_id, kept.config_id))
    return Target(**{field.name: said[field.name] for field in fields(Target) if field.name in said})


def _is_id(text: str) -> bool:
    return 0 < len(text) <= push_limits.ID_CHARS_MAX and text.isascii() and text.isprintable()
