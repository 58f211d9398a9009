"""`recto web`: the page, in the browser or in a window of its own."""

import asyncio
import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    import subprocess

    from recto.web.security import PageAccess

NEEDS_EXTRA = "the page needs an extra: pip install 'recto-context[web]'"
NEEDS_WINDOW = (
    "--native needs a display and pywebview: pip install 'recto-context[native]'; without --native the page opens in a "
    "browser"
)
# What runs in the process of the window. Where no toolkit can draw one, pywebview says so only when it starts.
WINDOW = """
import sys
try:
    import webview
    webview.create_window("Recto", sys.argv[1], width=1280, height=860)
    webview.start()
except Exception as why:
    words = str(why).strip().splitlines() or [type(why).__name__]
    sys.exit(f"recto: no window can be opened ({words[0]}); open the link above in a browser")
"""


@click.command()
@options.settings_options
@click.option("--port", type=click.IntRange(1, 65_535), metavar="N", help="The port to listen on (default: 8642).")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="The address to listen on; others need the key.",
)
@click.option("--no-open", "stays_closed", is_flag=True, help="Print the link, and open no browser.")
@click.option("--native", is_flag=True, help="Open a window of its own instead of a browser.")
def command(flags: dict[str, str], port: int | None, host: str, stays_closed: bool, native: bool) -> None:
    """Chat in the browser, and see beside every reply what went into it.

    The link holds the key to the page: without it nobody gets in, other users of this machine included.

    Example: recto web --vault notes --no-open
    """
    if find_spec("nicegui") is None:
        raise Invalid(NEEDS_EXTRA)
    if native and (find_spec("webview") is None or not _has_display()):
        raise Invalid(NEEDS_WINDOW)

    ends = ExitStack()

    def started(access: "PageAccess") -> None:
        show.say(f"Recto listens on {access.link}")
        if access.host not in ("127.0.0.1", "localhost", "::1"):
            show.note("others on the network reach it too, over an unencrypted connection; they need the key")
        if native:
            ends.callback(_open_window(access.one_time_link()).terminate)
        elif not stays_closed and _has_display():
            webbrowser.open(access.one_time_link())

    from recto.web.security import listening_socket  # only here

    # Ctrl-C is how the page ends
    with listening_socket(host, port) as listening, suppress(KeyboardInterrupt), ends:
        asyncio.run(_serve(flags, host, listening, started))


async def _serve(
    flags: dict[str, str], host: str, listening: socket.socket, started: "Callable[[PageAccess], object]"
) -> None:
    from recto.api.desk import open_async  # the store: a third of a second
    from recto.web.server import serve_page  # NiceGUI: a second

    async with await open_async(settings=dict(flags)) as desk:
        await serve_page(desk, host, listening, started)


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_window(link: str) -> "subprocess.Popen[bytes]":
    """A window in a process of its own: its loop needs the main thread. Closing it ends nothing here."""
    import subprocess  # only for a window

    return subprocess.Popen([sys.executable, "-c", WINDOW, link])
