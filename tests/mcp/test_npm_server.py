"""An MCP server published on npm, run by node from its package."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.mcp.conftest import Made, free_port, listens, tools_of

from recto.sources.server_config import ServerConfig

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SERVER = Path(__file__).parents[2] / ".venv/node/node_modules/.bin/mcp-server-everything"


async def test_a_server_from_npm_offers_its_tools_and_runs_them(made: Made) -> None:
    assert SERVER.exists(), "the server is not installed: make .venv/node.ready"
    servers = made()
    tools = await tools_of(servers, ServerConfig("everything", command=str(SERVER)))
    assert (await tools["echo"].call({"message": "hello"})).text == "Echo: hello"
    image = await tools["get-tiny-image"].call({})
    assert image.media[0].media_type == "image/png"
    assert image.media[0].data.startswith(b"\x89PNG")
    assert (await tools["echo"].call({"wrong": 1})).is_error


@pytest.fixture
def started() -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """Starts it over HTTP, at a port."""
    running: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> subprocess.Popen[bytes]:
        environment, quiet = os.environ | {"PORT": str(port)}, subprocess.DEVNULL
        running.append(subprocess.Popen([SERVER, "streamableHttp"], env=environment, stdout=quiet, stderr=quiet))
        listens(port)
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


async def test_a_server_that_restarted_and_lost_the_session_is_reached_again(
    made: Made, started: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    port = free_port()
    first = started(port)
    tools = await tools_of(made(), ServerConfig("everything", url=f"http://127.0.0.1:{port}/mcp"))
    assert (await tools["echo"].call({"message": "one"})).text == "Echo: one"
    first.kill()
    first.wait()
    started(port)
    for _ in range(5):
        outcome = await tools["echo"].call({"message": "two"})
        if not outcome.is_error:
            break
        assert outcome.text.startswith("the MCP server everything is gone: ")
    assert outcome.text == "Echo: two"
