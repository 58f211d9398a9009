"""`recto mcp`, with the SDK's own client: over standard input and output, and over HTTP."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.cli.preloaded import Preloaded
from tests.conftest import Open, Script

from mcp import Client

pytestmark = pytest.mark.untraced
Use = Callable[[Client], Coroutine[Any, Any, None]]
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
INSPECTOR_AT = Path(__file__).parents[2] / ".bench" / "inspector"
READING = {"search_conversations", "list_conversations", "read_conversation", "recall", "recall_facts"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Boat.md").write_text("# Boat\n\nThe keel of the boat is of oak.\n")
    return folder


@pytest.fixture
def talked(desk: Open, script: Script) -> None:
    opened = desk(script({"text": "The mast is of spruce."}))
    talk = opened.conversation()
    talk.ask("What is the mast made of?")
    talk.ask("Thank you.")
    opened.facts.learn("My sister Anna lives in Berlin")
    opened.close()


async def text_of(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    return "".join(getattr(each, "text", "") for each in result.content)


def over_stdio(use: Use, *arguments: str) -> None:
    async def run() -> None:
        command = ["-m", "recto", "mcp", *arguments]
        parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with Client(stdio_client(parameters)) as client:
            await use(client)

    asyncio.run(run())


@pytest.mark.usefixtures("talked")
def test_an_assistant_searches_and_reads_what_recto_keeps(notes: Path) -> None:
    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names >= {*READING, "read_document"}
        assert not names & {"remember", "forget_fact", "write_document"}
        found = json.loads(await text_of(client, "search_conversations", query="mast"))["found"]
        assert {"#1"} == {each["conversation"] for each in found}
        assert "The mast is of spruce." in {each["text"] for each in found}
        assert "spruce" in await text_of(client, "read_conversation", conversation="#1", first=2, last=2)
        assert "#1" in await text_of(client, "list_conversations")
        assert "Anna" in await text_of(client, "recall_facts", query="Where does my sister live?")
        assert "oak" in await text_of(client, "read_document", path="Boat")
        assert "there is no conversation" in await text_of(client, "read_conversation", conversation="#99")
        assert "missing argument: query" in await text_of(client, "search_conversations", limit=1)
        assert "limit must be a whole number" in await text_of(client, "search_conversations", query="x", limit=-1)
        assert "there is no tool" in await text_of(client, "no_such_tool")
        assert "nothing is archived" in await text_of(client, "recall", conversation="#1", query="mast")

    over_stdio(use, "--vault", str(notes))


@contextmanager
def over_http(preloaded: Preloaded, tmp_path: Path, *arguments: str) -> Iterator[str]:
    running = preloaded.start_piped("mcp", "--port", "0", *arguments, folder=tmp_path)
    try:
        yield running.stdout.readline().split()[3].removesuffix(";")
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()
        running.end()


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize("may_write", [False, True])
def test_the_same_is_served_over_http_and_it_remembers_where_it_may_write(
    tmp_path: Path, preloaded: Preloaded, may_write: bool
) -> None:
    async def run(url: str) -> None:
        async with Client(url) as client:
            assert "mast" in await text_of(client, "search_conversations", query="mast")
            names = {tool.name for tool in (await client.list_tools()).tools}
            if not may_write:
                assert names == READING
                return
            assert "Remembered as fact 2" in await text_of(client, "remember", text="The boat is called Sorrel")
            assert "Sorrel" in await text_of(client, "recall_facts", query="What is the boat called?")
            assert "Forgotten" in await text_of(client, "forget_fact", number=2)

    with over_http(preloaded, tmp_path, *(["--allow-write"] if may_write else [])) as url:
        asyncio.run(run(url))


def run_elsewhere(preloaded: Preloaded, home: Path, *arguments: str) -> None:
    """A command as another process, with a home of its own."""
    running = preloaded.start_piped(*arguments, environment={**os.environ, "RECTO_HOME": str(home)})
    running.stdout.read()
    assert running.wait() == 0
    running.end()


@pytest.mark.parametrize("kind", ["file", "database server"])
def test_what_other_processes_write_meanwhile_is_found_and_what_they_remove_is_forgotten(
    kind: str,
    tmp_path: Path,
    notes: Path,
    script: Script,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    preloaded: Preloaded,
) -> None:
    home, model = Path(os.environ["RECTO_HOME"]), script({"text": "The sail is of hemp."})
    if kind == "database server":
        monkeypatch.setenv("RECTO_DB", request.getfixturevalue("postgresql")())
        home = tmp_path / "other machine"
    monkeypatch.chdir(tmp_path)
    recto = partial(run_elsewhere, preloaded, home)

    async def run(url: str) -> None:
        async with Client(url) as client:
            assert json.loads(await text_of(client, "search_conversations", query="sail"))["found"] == []
            assert "Nothing" in await text_of(client, "recall_facts", query="sister")
            recto("ask", "--model", model, "What is the sail made of?")
            recto("memory", "add", "My sister Anna lives in Berlin")
            (notes / "Rope.md").write_text("# Rope\n\nThe halyard is of manila.\n")
            found = json.loads(await text_of(client, "search_conversations", query="hemp"))["found"]
            assert [each["text"] for each in found] == ["The sail is of hemp."]
            assert "hemp" in await text_of(client, "read_conversation", conversation="#1")
            assert "Anna" in await text_of(client, "recall_facts", query="Where does my sister live?")
            assert "manila" in await text_of(client, "find_excerpts", query="halyard")
            recto("conversations", "delete", "#1")
            assert json.loads(await text_of(client, "search_conversations", query="hemp"))["found"] == []
            recto("conversations", "empty-trash", "--yes")
            await asyncio.to_thread(wait_until_gone, Path(os.environ["RECTO_HOME"]) / "search.db", "hemp")

    with over_http(preloaded, tmp_path, "--vault", str(notes), "--set", "search.embedder=none") as url:
        asyncio.run(run(url))


def wait_until_gone(index: Path, word: str) -> None:
    with closing(sqlite3.connect(index)) as connection:
        while connection.execute("SELECT 1 FROM words WHERE words MATCH ?", (word,)).fetchone():
            time.sleep(0.02)


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The inspector of npm, installed once."""
    program = INSPECTOR_AT / "node_modules/.bin/mcp-inspector"
    if not program.exists():
        if not (npm := shutil.which("npm")):
            pytest.skip("npm is not installed")
        quiet = ("--silent", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--ignore-scripts")
        subprocess.run([npm, "install", *quiet, "--prefix", str(INSPECTOR_AT), INSPECTOR], check=True)
    return program


def inspected(inspector: Path, *arguments: str) -> Any:
    command = [str(inspector), "--cli", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout)
