"""`python -m recto.serve.worker`: a worker of `recto serve`. Its plan comes over standard input, where the end of the
input is the end of the worker; its port and then its figures go to standard output. See `workers.py`."""

import asyncio
import hmac
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

import msgspec
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.desk import new_desk
from recto.serve.access import Limits
from recto.serve.app import build_app
from recto.serve.gateway import Gateway, ServeOptions
from recto.serve.metrics import Metrics
from recto.serve.server import bound_socket, collect_in_small_steps, serve
from recto.serve.span_exporter import find_collector
from recto.serve.workers import SECRET_HEADER, WorkerPlan

TELL_S = 1.0
# On a busy machine the server, which answers everybody, comes first.
NICE = 5


def main() -> None:
    with suppress(AttributeError):  # not on Windows
        os.nice(NICE)
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerPlan)
    with bound_socket("127.0.0.1", 0) as bound:
        asyncio.run(_serve(plan, bound))


async def _serve(plan: WorkerPlan, bound: socket.socket) -> None:
    limits = Limits(
        plan.limits.body_bytes, plan.limits.read_s * 2
    )  # the server, which hears the client, gives up first
    options = ServeOptions(
        plan.mode,
        plan.needs_key,
        plan.fallbacks,
        plan.on_disconnect,
        limits,
        collector=find_collector(os.environ),
        is_worker=True,
    )
    async with new_desk(home=plan.home, project=plan.project, model=plan.model, settings=plan.settings) as desk:
        await desk.follow()
        gateway = Gateway(desk, options)
        collect_in_small_steps()
        _tell(b"%d" % bound.getsockname()[1])
        threading.Thread(target=_end_with_input, daemon=True).start()
        telling = asyncio.create_task(_keep_telling(gateway.metrics))
        await serve(_OwnServerAlone(build_app(gateway), plan.secret), bound)
        telling.cancel()
        _tell(gateway.metrics.taken())


def _tell(line: bytes) -> None:
    with suppress(OSError):  # the server is gone
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


async def _keep_telling(metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(TELL_S)
        _tell(metrics.taken())


class _OwnServerAlone:
    """Answers the server that started this process, and nobody else on this machine."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app, self._secret = app, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = next((value for name, value in scope.get("headers", ()) if name == SECRET_HEADER.encode()), b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, self._secret):
            await PlainTextResponse("This port belongs to recto serve.\n", 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)


if __name__ == "__main__":
    main()
