"""Real servers as processes: an ordinary one by the SDK, and one written by hand that does what it should not."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recto.mcp.servers import McpServers
from recto.sources.server_config import ServerConfig
from recto.sources.tools import RemoteTool

PARTS = Path(__file__).parent / "parts"
Made = Callable[..., McpServers]


async def tools_of(servers: McpServers, *configs: ServerConfig, fresh: bool = False) -> dict[str, RemoteTool]:
    """By the server's own names; fails with the notes where there are none."""
    offer = await servers.offer(configs, None, fresh=fresh)
    assert offer.tools, offer.notes
    return {remote.tool.own_name: remote for remote in offer.tools}


async def until(true: Callable[[], object]) -> None:
    for _ in range(3_000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def listens(port: int) -> None:
    for _ in range(3_000):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError("it did not start")


def is_alive(pid: int) -> bool:
    """A process that has ended and that nobody has asked about yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def plain(name: str = "plain", **said: Any) -> ServerConfig:
    return ServerConfig(name, command=sys.executable, args=(str(PARTS / "plain.py"),), **said)


def odd(mode: str = "", name: str = "odd", **said: Any) -> ServerConfig:
    return ServerConfig(name, command=sys.executable, args=("-S", str(PARTS / "odd.py"), mode), **said)


def in_a_process(home: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a program that has `made`, the servers of a home, and `odd`, which makes a config."""
    before = (
        "import asyncio, os, sys, time; from pathlib import Path; from recto.mcp import servers",
        "from recto.sources.server_config import ServerConfig",
        "made = servers.McpServers(Path(sys.argv[1]), os.environ, timeout_s=9, start_s=60)",
        "odd = lambda *more: ServerConfig('odd', command=sys.executable, args=('-S', sys.argv[2], *more))",
    )
    run = [sys.executable, "-c", "\n".join((*before, *lines)), str(home), str(PARTS / "odd.py")]
    return subprocess.run(run, capture_output=True, text=True, check=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Makes Servers on one home, and closes them at the end. None of them is given up because the machine is busy."""
    monkeypatch.setattr("recto.mcp.server_connection.PING_TIMEOUT_S", 600.0)
    all: list[McpServers] = []

    def make(environment: dict[str, str] | None = None, *, start_s: float = 600.0) -> McpServers:
        servers = McpServers(tmp_path / "home", os.environ | (environment or {}), timeout_s=600.0, start_s=start_s)
        all.append(servers)
        return servers

    yield make
    for servers in all:
        servers.close()
