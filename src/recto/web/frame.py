"""The frame of every page: its head, its places, and the pages that fill the middle alone.

A view is a Fragment, or any NiceGUI element, that is made inside one of the places.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui

from recto.web.components import Act, Fragment
from recto.web.templates import fill

HEAD = """
<meta name="referrer" content="no-referrer">
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/page.js" defer></script>
"""
# NiceGUI gives up after three seconds, which a busy machine may need.
BUILD_TIMEOUT_S = 60.0
VIEWS: dict[str, str] = {}
"""Pages besides the chat, by address: what the menu calls them. `full_page` frames one."""


def add_head() -> None:
    ui.add_head_html(HEAD)


@contextmanager
def page_frame() -> Iterator[None]:
    """The whole window, in which the places of a page stand side by side."""
    add_head()
    with ui.element("div").classes("page"):
        Fragment('<p id="announcer" role="status" aria-live="polite"></p>').classes("sr")
        Fragment(fill("shortcuts")).classes("keys")
        yield


@contextmanager
def place(name: str, tag: str = "div", label: str = "") -> Iterator[ui.element]:
    """One of `list`, `chat` and `panel`."""
    made = ui.element(tag).classes(f"place {name}")
    if label:
        made.props["aria-label"] = label
    with made:
        yield made


@contextmanager
def full_page(title: str, act: Act | None = None) -> Iterator[None]:
    """A page such as /stats: the menu, its title, and what is made inside below it."""
    with page_frame(), place("full", "main"):
        Fragment(fill("full_head", title=title, views=VIEWS), act, tag="header").classes("full-head")
        with ui.element("div").classes("full-body"):
            yield
