"""LocalServer: short JSON requests to a model server on this machine or in its network. Knows no particular API."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from recto.errors import Unreachable
from recto.wire import Json, dumpb, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient

PROBE_S = 2.0
ANSWER_S = 60.0


class LocalServer:
    def __init__(self, root: str, key: str | None = None) -> None:
        """`root` is the address without the /v1 of the OpenAI format."""
        self.root = root.rstrip("/")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    async def ask(self, method: str, path: str, body: Json = None, timeout_s: float = ANSWER_S) -> tuple[int, Json]:
        """The status and the answer, which is None where it is not JSON. Raises Unreachable."""
        import httpx2  # slow, and only to ask

        content = None if body is None else dumpb(body)
        try:
            try:
                response = await self._client().request(method, path, content=content, timeout=timeout_s)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as why:
                if isinstance(why, httpx2.ConnectError):
                    raise
                # the server had dropped an idle connection: a new one works
                response = await self._client().request(method, path, content=content, timeout=timeout_s)
        except (httpx2.HTTPError, httpx2.InvalidURL) as why:
            raise Unreachable(f"The server at {self.root} cannot be reached; check that it runs.") from why
        return response.status_code, _json(response.content)

    async def close(self) -> None:
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()

    def _client(self) -> "AsyncClient":
        import httpx2  # slow, and only to ask

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            headers = {"content-type": "application/json", **self._headers}
            # no proxy for a server in our network; and without TLS there is nothing to verify
            secure = self.root.startswith("https:")
            client = httpx2.AsyncClient(base_url=self.root, headers=headers, trust_env=False, verify=secure)
            self._clients[loop] = client
        return self._clients[loop]


def _json(content: bytes) -> Json:
    try:
        return loads(content)
    except (ValueError, RecursionError):
        return None
