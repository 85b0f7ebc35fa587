"""xAI's provider with a gRPC channel that makes each call once.

The SDK opens its channels with a retry policy of its own. A channel belongs to the event loop it was opened on, and a
model may be opened before there is one, so it is opened at the first call, and again on another loop.
"""

import asyncio
from types import TracebackType
from typing import Any

from pydantic_ai.providers.xai import XaiProvider
from xai_sdk import AsyncClient

_NO_RETRIES = [("grpc.enable_retries", 0)]


class OneRequestXaiProvider(XaiProvider):
    """The provider of `xai:…`. Keyword arguments are the SDK client's own (`api_host`, `timeout`, …)."""

    def __init__(self, **client_options: Any) -> None:
        super().__init__(api_key=client_options.pop("api_key", None))
        self._client_options = client_options
        self._channel_loop: asyncio.AbstractEventLoop | None = None
        self._once_client: AsyncClient | None = None

    @property
    def client(self) -> AsyncClient:
        """The SDK's client on the running loop."""
        loop = asyncio.get_running_loop()
        if self._once_client is None or loop is not self._channel_loop:
            self._once_client = AsyncClient(api_key=self.api_key, channel_options=_NO_RETRIES, **self._client_options)
            self._channel_loop = loop
        return self._once_client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the channel when nobody uses the provider any more; a later call opens another."""
        suppress = await super().__aexit__(kind, error, trace)
        if self._entered_count == 0 and self._once_client is not None:
            client, self._once_client = self._once_client, None
            await client.close()
        return suppress
