"""OrderlyServer: a uvicorn server whose process ends as one that has done its work."""

import signal
import socket
from types import FrameType

import uvicorn

# Connections that wait in the kernel. uvicorn's `backlog` also says how many are accepted at once.
QUEUED = 2048


class OrderlyServer(uvicorn.Server):
    """Ends in order at the first signal; uvicorn's own server then raises the signal again, as if it had failed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(QUEUED)
