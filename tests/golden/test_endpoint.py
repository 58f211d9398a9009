"""What the endpoint replies on every route, in every mode, whole and streamed, over a copy of the golden home."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest
from click.testing import CliRunner
from starlette.routing import Route
from tests.golden.conftest import World, compare_with, pretty, surroundings
from tests.golden.endpoint_calls import (
    ASKED,
    CASES,
    PREVIOUS,
    SAYS,
    SCRIPTS,
    UPSTREAMS,
    VECTORS,
    Call,
    chat,
    scripted,
    write_scripts,
)
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint
from tests.store.golden.upstream import running

from recto.cli.main import recto
from recto.serve.gateway import ServeOptions

VARYING_FIGURES = re.compile(r"^(recto_\w+_seconds\S*|recto_replies_running) \S+$", re.MULTILINE)
SHOWN = ("content-type", "x-recto-")
Served = tuple[World, dict[str, str]]
# A model may be asked if an option names it; the first stands in for one that is limited.
FALLBACKS = {"none": tuple(map(scripted, SCRIPTS)), scripted("limited"): (SAYS,)}


@pytest.fixture(scope="module")
def served(worlds: Callable[[], World]) -> Iterator[Served]:
    """A copy that clients write to, and variables that name providers on loopback."""
    world = worlds()
    write_scripts(world.project / "models")
    with ExitStack() as stack:
        addresses = {}
        for name, (answer, format) in UPSTREAMS.items():
            routes = {"/v1/embeddings": [Loopback.whole(VECTORS)]}
            addresses[f"RECTO_{name.upper()}_BASE_URL"] = stack.enter_context(running(Loopback(answer, routes=routes)))
            addresses[f"RECTO_{name.upper()}_FORMAT"] = format

        yield world, addresses


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Endpoint]:
    world, addresses = served
    with surroundings(world, **addresses):
        started = Endpoint(world.home, SAYS, ServeOptions(needs_key=False, fallbacks=FALLBACKS))
    yield started
    started.stop()


def test_every_route_has_a_golden_file(server: Endpoint) -> None:
    routes = {route.path for route in server._server.config.app.routes if isinstance(route, Route)}  # type: ignore[union-attr]
    assert routes - {"/metrics"} == {call.path for calls in CASES.values() for call in calls} - {"/v1/nothing", "/"}


@pytest.mark.parametrize("case", CASES)
def test_a_client_gets_what_it_got(case: str, served: Served, server: Endpoint) -> None:
    world, addresses = served
    with surroundings(world, **addresses):
        text = told(server, CASES[case])
    compare_with(world, f"endpoint/{case}.txt", text)


def told(server: Endpoint, calls: list[Call], headers: dict[str, str] | None = None) -> str:
    parts, last = [], ""
    for call in calls:
        body = json.dumps(call.body) if not isinstance(call.body, bytes | None) else call.body or b""
        sent = body.replace(PREVIOUS, last) if isinstance(body, str) else body
        response = server.client.request(call.method, call.path, content=sent, headers=call.headers | (headers or {}))
        parts.append(_asked(call, body) + _answered(response))
        last = _id(response)
    return "\n".join(parts)


def _asked(call: Call, body: str | bytes) -> str:
    text = body if isinstance(body, str) else body.decode()
    said = f" {text[:240]}{'…' if len(text) > 240 else ''}" if text else ""
    return "".join(
        [f"> {call.method} {call.path}{said}\n", *(f"> {name}: {call.headers[name][:80]}\n" for name in call.headers)]
    )


def _answered(response: httpx2.Response) -> str:
    shown = [f"{name}: {value}" for name, value in sorted(response.headers.items()) if name.startswith(SHOWN)]
    return "\n".join([str(response.status_code), *shown, *map(_line, response.text.splitlines())]) + "\n"


def _line(line: str) -> str:
    """A whole reply over several lines; an event stays in its line."""
    return line if line.startswith(("data:", "event:")) else pretty(line)


def _id(response: httpx2.Response) -> str:
    try:
        return str(response.json().get("id", ""))
    except (ValueError, AttributeError):
        return ""


# -- keys and figures


def test_a_server_with_keys_says_what_it_said(served: Served) -> None:
    world, addresses = served
    with surroundings(world, **addresses):
        server = Endpoint(world.home, SAYS, ServeOptions(fallbacks=FALLBACKS))
        try:
            parts = _asked_with_keys(server)
        finally:
            server.stop()
    compare_with(world, "endpoint/keys-and-metrics.txt", "\n".join(map(_without_times, parts)))


def _asked_with_keys(server: Endpoint) -> list[str]:
    parts = [told(server, [chat(SAYS, ASKED), Call("/v1/models", method="GET")])]
    parts.append(told(server, [chat(SAYS, ASKED)], {"authorization": "Bearer recto-unknown"}))
    for limit in ("narrow --model openai:*", "poor --spend-day 0.000001", "slow --requests-per-minute 1"):
        made = CliRunner().invoke(recto, ["serve", "keys", "add", *limit.split(), "--json"])
        by = {"x-api-key": json.loads(made.stdout)["key"]}
        parts.append(told(server, [chat(SAYS, ASKED), chat(SAYS, ASKED)], by))
        if limit.startswith("narrow"):
            parts.append(told(server, [Call("/v1/models", method="GET")], by))
    parts.append(told(server, [Call("/metrics", method="GET")]))
    return parts


def _without_times(text: str) -> str:
    """Of figures about time only that they are there."""
    return VARYING_FIGURES.sub(r"\1 <number>", text)
