"""MCP servers over streamable HTTP on loopback."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.mcp.conftest import PARTS, Made, free_port, listens, tools_of

from recto.chat.blocks import ToolCall
from recto.mcp.servers import ToolOffer
from recto.sources.server_config import ServerConfig
from recto.sources.tools import Toolbox

pytestmark = pytest.mark.anyio


class Served:
    """The ordinary server, over HTTP; can be ended and started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    @property
    def config(self) -> ServerConfig:
        return ServerConfig("web", url=f"http://127.0.0.1:{self.port}/mcp", headers={"X-Key": "${KEY}"})

    def start(self) -> None:
        environment = os.environ | {"PORT": str(self.port)}
        command, quiet = [sys.executable, str(PARTS / "plain.py"), "http"], subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
        listens(self.port)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.end()


async def test_an_http_server_offers_its_tools_and_runs_them(made: Made, served: Served) -> None:
    servers = made({"KEY": "k"})
    tools = await tools_of(servers, served.config)
    assert (await tools["add"].call({"a": 20, "b": 22})).text == "42"
    assert [state.state for state in servers.statuses()] == ["running"]
    assert len((await tools["big"].call({"size": 5_000_000})).text) > 4_900_000


async def test_an_http_server_that_restarts_is_reached_again(made: Made, served: Served) -> None:
    box = Toolbox([*(await tools_of(made({"KEY": "k"}), served.config)).values()])
    call = ToolCall("1", "web__add", '{"a": 1, "b": 1}')
    served.end()
    lost = await box.run(call)
    assert lost.result.is_error
    assert lost.result.text.startswith("the MCP server web ")
    served.start()
    assert (await box.run(call)).result.text == "2"


async def test_a_url_without_a_server_is_reported(made: Made) -> None:
    offer = await made().offer([ServerConfig("web", url=f"http://127.0.0.1:{free_port()}/mcp")], None)
    assert not offer.tools
    assert offer.notes[0].startswith("the MCP server web did not start: ")


@pytest.fixture
def answering() -> Iterator[Any]:
    """A server that gives every request the same answer."""
    servers: list[http.server.HTTPServer] = []

    def start(status: int, body: bytes, **headers: str) -> ServerConfig:
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                self.send_header("content-type", "application/json")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    return

            def log_message(self, format: str, *args: Any) -> None:
                return

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return ServerConfig("web", url=f"http://127.0.0.1:{servers[-1].server_port}/mcp")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


async def test_an_http_error_is_reported_with_its_status(made: Made, answering: Any) -> None:
    said = "HTTP 401 Unauthorized: Server returned an error response"
    offer = await made().offer([answering(401, b"{}")], None)
    assert offer == ToolOffer(notes=(f"the MCP server web did not start: {said}; its tools are missing",))


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"x" * 4_000_001, {}, "the result is larger than 4 MB"),
        (b"nothing", {"content_encoding": "gzip"}, "compressed"),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "result": []}).encode(), {}, "did not start"),
    ],
)
async def test_a_response_that_is_too_large_compressed_or_invalid_is_reported(
    made: Made, answering: Any, body: bytes, headers: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.mcp.client.MAX_MESSAGE_BYTES", 4_000_000)
    offer = await made().offer([answering(200, body, **headers)], None)
    assert not offer.tools
    assert said in offer.notes[0]
