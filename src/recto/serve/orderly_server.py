"""OrderlyServer: a uvicorn server whose process ends as one that has done its work."""

import signal
from types import FrameType

import uvicorn


class OrderlyServer(uvicorn.Server):
    """Ends in order at the first signal; uvicorn's own server then raises the signal again, as if it had failed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
