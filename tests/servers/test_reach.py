"""Reach: variables filled in, from what was given and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from recto.errors import Invalid
from recto.servers.reach import reach_of
from recto.sources.server import ServerConfig

GIVEN = {"TOKEN": "t0k", "EMPTY": "", "HOME": "/home/me"}
NEUTRAL = Path("/home/me/.recto/servers")


def test_variables_are_filled_in_everywhere() -> None:
    config = ServerConfig("x", command="/${TOKEN}/run", args=("--key=${TOKEN}",), env={"A": "${B:-b}"}, cwd="${TOKEN}")
    reach = reach_of(config, Path("/project"), GIVEN, NEUTRAL)
    assert (reach.command, reach.args, reach.env) == ("/t0k/run", ("--key=t0k",), {"A": "b"})
    assert reach.cwd == "/project/t0k"


def test_an_address_and_its_headers_are_filled_in() -> None:
    config = ServerConfig("x", url="https://${HOST:-example.org}/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    reach = reach_of(config, None, GIVEN, NEUTRAL)
    assert (reach.url, reach.headers) == ("https://example.org/mcp", {"Authorization": "Bearer t0k"})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${EMPTY:-d}", "d"),
        ("a${EMPTY}", "a"),
        ("a${NO:-}", "a"),
        ("$TOKEN", "$TOKEN"),
        ("${env:TOKEN}", "t0k"),
        ("${env:NO:-d}", "d"),
        ("${RECTO_PROJECT}", "/p"),
        ("~/x", "/home/me/x"),
    ],
)
def test_variables_are_filled_in_as_a_shell_has_it(text: str, filled: str) -> None:
    reach = reach_of(ServerConfig("x", command="run", cwd=text), Path("/p"), GIVEN, NEUTRAL)
    assert reach.cwd == str(Path("/p") / filled)


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(Invalid, match="x was not started: KEY and OTHER are not set"):
        reach_of(ServerConfig("x", command="run", args=("${KEY}", "${OTHER}", "${KEY}")), None, GIVEN, NEUTRAL)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ServerConfig("x"), "neither a command nor a url"),
        (ServerConfig("x", command="a", url="http://b"), "both a command and a url"),
        (ServerConfig("x", url="ftp://b"), "must begin with http"),
        (ServerConfig("x", url="http://b", headers={"A": "one\ntwo"}), "character that none may hold"),
    ],
)
def test_what_cannot_be_reached_is_said(config: ServerConfig, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        reach_of(config, None, GIVEN, NEUTRAL)


def test_what_may_be_done_with_the_tools_does_not_change_how_a_server_is_reached() -> None:
    config = ServerConfig("x", command="run")
    one, other = (
        reach_of(each, None, {}, NEUTRAL) for each in (config, replace(config, approval="allow", include="agent"))
    )
    assert one.key == other.key
    assert reach_of(replace(config, env={"A": "b"}), None, {}, NEUTRAL).key != one.key


@pytest.mark.parametrize("project", [Path("/project"), None])
def test_what_is_yours_is_not_started_in_a_folder_that_may_be_from_anywhere(project: Path | None) -> None:
    assert reach_of(ServerConfig("x", command="npx"), project, GIVEN, NEUTRAL).cwd == str(NEUTRAL)
    assert reach_of(ServerConfig("x", command="npx", cwd="${EMPTY}"), project, GIVEN, NEUTRAL).cwd == str(NEUTRAL)


def test_what_is_yours_is_started_in_the_project_when_you_say_so() -> None:
    config = ServerConfig("x", command="npx", cwd=".")
    assert reach_of(config, Path("/project"), GIVEN, NEUTRAL).cwd == "/project"
    assert reach_of(replace(config, cwd="sub"), Path("/project"), GIVEN, NEUTRAL).cwd == "/project/sub"
    assert reach_of(config, None, GIVEN, NEUTRAL).cwd == "."
    assert reach_of(replace(config, cwd="/srv"), Path("/project"), GIVEN, NEUTRAL).cwd == "/srv"


def test_what_comes_with_a_project_is_started_in_it() -> None:
    config = ServerConfig("x", command="./run", is_yours=False, origin="/project/.recto/agents/a/agent.toml")
    reach = reach_of(config, Path("/project"), GIVEN, NEUTRAL)
    assert (reach.command, reach.cwd) == ("./run", "/project")


def test_a_relative_command_of_yours_lies_beside_the_file_that_says_it() -> None:
    config = ServerConfig("x", command="./run", cwd=".", origin="/home/me/.recto/agents/a/agent.toml")
    assert reach_of(config, Path("/project"), GIVEN, NEUTRAL).command == "/home/me/.recto/agents/a/run"
    assert reach_of(replace(config, command="npx"), None, GIVEN, NEUTRAL).command == "npx"
    assert reach_of(replace(config, command="~/run"), None, GIVEN, NEUTRAL).command == "/home/me/run"
    with pytest.raises(Invalid, match=r"relative command, \./run: give the whole path"):
        reach_of(replace(config, origin=""), Path("/project"), GIVEN, NEUTRAL)
