"""What the user lets servers do: Trust, by project and by the whole config of a server, and AllowedTools."""

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.mcp.conftest import Made, odd

from recto.errors import RectoError
from recto.mcp.allowed_tools import AllowedTools, Trust
from recto.sources.server_config import ServerConfig
from recto.sources.source import Tool
from recto.sources.tools import RemoteTool, ToolOutput

SERVER = ServerConfig("files", command="serve", args=("--token", "hush"), origin="/home/.mcp.json")


async def never(*_: object) -> ToolOutput:
    raise AssertionError


async def nothing() -> None:
    return None


def remote(name: str, description: str = "", config: ServerConfig = SERVER, project: Path | None = None) -> RemoteTool:
    tool = Tool(f"files__{name}", description, {}, server="files", own_name=name)
    return RemoteTool(tool, never, nothing, config.identity(project), "allow")


def test_processes_that_pin_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    tools = [replace(remote(f"tool_{number}"), is_named=True) for number in range(12)]
    threads = [threading.Thread(target=AllowedTools(tmp_path).pin, args=([tool], ())) for tool in tools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert AllowedTools(tmp_path).changes(tools) == ()
    assert AllowedTools(tmp_path).change(remote("tool_3", "Reworded.").definition)


def test_a_server_of_a_project_is_another_one_in_another_project(tmp_path: Path) -> None:
    theirs = replace(SERVER, is_yours=False)
    one, other = (remote("read", "Reads.", theirs, tmp_path / name) for name in ("one", "other"))
    allowed = AllowedTools(tmp_path)
    allowed.pin([one], ())
    assert allowed.change(one.definition) is None
    assert allowed.change(other.definition)
    assert one.definition.sha256 != other.definition.sha256, "what a conversation keeps does not hold there either"


def test_a_definition_that_was_accepted_before_comes_back_without_a_question(tmp_path: Path) -> None:
    first, second = remote("read", "Reads."), remote("read", "Reads a file.")
    allowed = AllowedTools(tmp_path)
    assert allowed.pin([first], ()) == []
    (note,) = allowed.pin([second], ())
    assert note.startswith("files/read has changed since you allowed it (description)")
    allowed.accept([second.definition])
    assert allowed.changes([first]) == allowed.changes([second]) == ()


def test_no_secret_is_kept(tmp_path: Path) -> None:
    AllowedTools(tmp_path).pin([remote("read", config=replace(SERVER, env={"KEY": "hush"}))], ())
    (path,) = (tmp_path / "allowed").glob("*.json")
    assert "hush" not in path.read_text()


@pytest.mark.anyio
async def test_a_call_of_a_tool_that_is_not_what_was_approved_does_not_run(made: Made) -> None:
    servers = made()
    offer = await servers.offer([odd()], None)
    pid = next(each for each in offer.tools if each.tool.own_name == "pid")
    approved = pid.call.args[1]  # type: ignore[attr-defined]
    ran = await servers._call(odd(), replace(approved, description="Something else."), None, {})
    assert ran.is_error
    assert "was not run" in ran.text
    assert not (await pid.call({})).is_error


# -- which servers of a project may start

THEIRS = ServerConfig("build", command="make", args=("serve",), is_yours=False)


def test_a_server_of_a_project_is_trusted_after_trust_as_it_is_and_in_that_project_alone(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    assert trust.is_trusted(replace(THEIRS, is_yours=True), tmp_path)
    assert not trust.is_trusted(THEIRS, tmp_path)
    trust.trust(THEIRS, tmp_path)
    assert Trust(tmp_path).is_trusted(THEIRS, tmp_path)
    assert not trust.is_trusted(replace(THEIRS, args=("serve", "--everything")), tmp_path)
    assert not trust.is_trusted(THEIRS, tmp_path / "two")
    assert not trust.is_trusted(THEIRS, None)


def test_trust_can_be_revoked_and_that_of_others_stays(tmp_path: Path) -> None:
    trust, other = Trust(tmp_path), replace(THEIRS, name="other")
    trust.trust(THEIRS, tmp_path)
    trust.trust(other, tmp_path)
    trust.distrust("build", tmp_path)
    trust.distrust("nobody", None)
    assert not trust.is_trusted(THEIRS, tmp_path)
    assert trust.is_trusted(other, tmp_path)
    trust.distrust("other", tmp_path)
    assert not trust.is_trusted(other, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "not JSON", '{"format": 9, "projects": {}}', '{"format": 1, "projects": 3}']
)
def test_an_unreadable_file_trusts_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "trusted.json").write_text(text)
    trust = Trust(tmp_path)
    assert not trust.is_trusted(THEIRS, tmp_path)
    trust.trust(THEIRS, tmp_path)
    assert trust.is_trusted(THEIRS, tmp_path)


def test_trust_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RectoError, match="cannot write"):
        Trust(tmp_path / "file").trust(THEIRS, None)
