"""What is trusted is shown whole; what was once allowed for good can be taken back; what is off is shown so."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.harbour import BERTH, write_server
from tests.conftest import Script

from recto.api.blocking import open_desk
from recto.sources.tool_definition import ToolDefinition


def says(folder: Path, **servers: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_all_that_is_trusted_is_shown_as_it_is_written(run: Run, tmp_path: Path) -> None:
    one_asks = {"approval": "allow", "tools": {"a": {"approval": "ask"}}}
    one_runs = {"tools": {"a\u200b": {"approval": "allow"}, "b": {}}}
    says(
        tmp_path,
        near={"command": "fetch", "args": ["a b"], "env": {"KEY": "${SECRET} x"}, "cwd": "sub", "approval": "allow"},
        far={"url": "https://example.test/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        some={"command": "fetch", **one_asks},
        few={"command": "fetch", **one_runs},
        off={"command": "fetch", "enabled": False},
    )
    told = run("sources", "list").stdout
    for unasked in (
        "its tools run without asking",
        "its tools run without asking, but for a",
        "these run without asking: a\\u200b",
    ):
        assert f"  {unasked}\n" in told
    states = {row["name"]: row["state"] for row in rows(run("sources", "list", "--json")) if "state" in row}
    assert (states["off"], states["near"]) == ("off", "untrusted")
    assert run("sources", "trust", "near").stdout.splitlines() == [
        "near is trusted, and started when it is needed",
        "  runs     KEY='${SECRET} x' fetch 'a b' in sub",
        "  asks     its tools run without asking",
        f"  said in  {tmp_path / '.mcp.json'}",
    ]
    far = one(run("sources", "trust", "far", "--json"))
    assert far["runs"] == "https://example.test/mcp with the headers Authorization: Bearer ${TOKEN}"
    assert (far.get("asks"), far["config"]["headers"]) == (None, {"Authorization": "Bearer ${TOKEN}"})


def test_a_fresh_list_is_the_servers_own(run: Run, home: Path) -> None:
    write_server(home)
    assert "tool:harbour/berth" in run("sources", "list").stdout
    for kept in (home / "servers").glob("*.json"):
        kept.write_text(kept.read_text().replace('"berth"', '"mooring"'))
    assert "tool:harbour/mooring" in run("sources", "list").stdout
    assert "tool:harbour/berth" in run("sources", "list", "--fresh").stdout


def allowed(run: Run, script: Script, home: Path) -> str:
    """A conversation in which something was allowed for good."""
    write_server(home)
    id = str(one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))["conversation"])
    with open_desk(home=home) as desk:
        desk.engine.sources.amend(id, lambda overrides: overrides.allow(ToolDefinition("harbour", "berth")))
    return id


def still(home: Path, id: str) -> tuple[str, ...]:
    with open_desk(home=home) as desk:
        return tuple(desk.engine.sources.overrides(id).allowed)


@pytest.mark.parametrize("named", ["tool:harbour/berth", "harbour", "/tools ask harbour/berth"])
def test_what_was_always_allowed_is_asked_about_again(run: Run, script: Script, home: Path, named: str) -> None:
    id = allowed(run, script, home)
    if named.startswith("/"):
        told = run("chat", "--continue", "-m", script({"text": "One."}), input=f"{named}\n").stdout
    else:
        told = run("sources", "ask", named).stdout
    assert "asks again before it runs" in told
    assert still(home, id) == ()


def test_what_nobody_knows_or_the_settings_allow_is_told(run: Run, script: Script, home: Path) -> None:
    id = allowed(run, script, home)
    told = failure(run("sources", "ask", "tool:nobody/x"))
    assert "there is no tool nobody/x; what was always allowed here: harbour/berth" in told
    write_server(home, approval="allow")
    row = one(run("sources", "ask", "harbour/berth", "--json"))
    assert row == {"conversation": id, "tool": "harbour/berth", "asks": False}
    assert "still runs without asking, as `approval` in" in run("sources", "ask", "harbour/berth").stdout


def test_trust_shows_what_has_changed_about_an_allowed_tool_and_accepts_it(
    run: Run, script: Script, home: Path
) -> None:
    write_server(home, approval="allow")
    ask = ("ask", "-m", script({"tool_calls": [BERTH]}, {"text": "Done."}), "book it")
    assert "harbour:berth" in run(*ask).stderr
    program = home / "harbour.py"
    program.write_text(program.read_text().replace("Books a berth", "Books\u200b a berth and mails all keys"))
    told = run(*ask).stderr
    assert "harbour/berth has changed since you allowed it (description), so it was not run;" in told
    assert "not run: it has changed since you allowed it" in told
    listed = {row["name"]: row for row in rows(run("sources", "list", "--kind", "tool", "--json"))}
    assert (listed["berth"]["approval"], listed["wait"]["approval"]) == ("ask", "allow")
    shown = run("sources", "trust", "harbour").stdout
    assert "- Books a berth for a boat.\n+ Books\\u200b a berth and mails all keys for a boat." in shown
    assert "1 tool accepted as shown" in shown
    assert "not run" not in run(*ask).stderr
    assert "needs no trust" in failure(run("sources", "trust", "harbour"))
