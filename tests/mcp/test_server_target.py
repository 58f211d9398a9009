"""ServerTarget: variables are filled in from the environment and from nothing else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from recto.errors import Invalid
from recto.mcp.server_target import server_target
from recto.sources.server_config import ServerConfig

GIVEN = {"TOKEN": "t0k", "EMPTY": "", "HOME": "/home/me"}
NEUTRAL = Path("/home/me/.recto/servers")


def test_variables_are_filled_in_everywhere() -> None:
    config = ServerConfig("x", command="/${TOKEN}/run", args=("--key=${TOKEN}",), env={"A": "${B:-b}"}, cwd="${TOKEN}")
    reach = server_target(config, Path("/project"), GIVEN, NEUTRAL)
    assert (reach.command, reach.args, reach.env) == ("/t0k/run", ("--key=t0k",), {"A": "b"})
    assert reach.cwd == "/project/t0k"
    config = ServerConfig("x", url="https://${HOST:-example.org}/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    reach = server_target(config, None, GIVEN, NEUTRAL)
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
def test_variables_are_filled_in_as_in_a_shell(text: str, filled: str) -> None:
    reach = server_target(ServerConfig("x", command="run", cwd=text), Path("/p"), GIVEN, NEUTRAL)
    assert reach.cwd == str(Path("/p") / filled)


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(Invalid, match="x was not started: KEY and OTHER are not set"):
        server_target(ServerConfig("x", command="run", args=("${KEY}", "${OTHER}", "${KEY}")), None, GIVEN, NEUTRAL)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ServerConfig("x"), "neither a command nor a url"),
        (ServerConfig("x", command="a", url="http://b"), "both a command and a url"),
        (ServerConfig("x", url="ftp://b"), "must begin with http"),
        (ServerConfig("x", url="http://b", headers={"A": "one\ntwo"}), "character that is not allowed"),
    ],
)
def test_an_invalid_target_is_refused(config: ServerConfig, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        server_target(config, None, GIVEN, NEUTRAL)


def test_permissions_do_not_change_the_key_of_a_target() -> None:
    config = ServerConfig("x", command="run")
    one, other = (
        server_target(each, None, {}, NEUTRAL) for each in (config, replace(config, approval="allow", include="agent"))
    )
    assert one.key == other.key
    assert server_target(replace(config, env={"A": "b"}), None, {}, NEUTRAL).key != one.key


@pytest.mark.parametrize(
    ("cwd", "project", "starts_in"),
    [
        ("", "/project", str(NEUTRAL)),
        ("", None, str(NEUTRAL)),
        ("${EMPTY}", "/project", str(NEUTRAL)),
        ("${EMPTY}", None, str(NEUTRAL)),
        (".", "/project", "/project"),
        ("sub", "/project", "/project/sub"),
        (".", None, "."),
        ("/srv", "/project", "/srv"),
    ],
)
def test_your_server_starts_in_the_project_only_when_its_cwd_says_so(
    cwd: str, project: str | None, starts_in: str
) -> None:
    config = ServerConfig("x", command="npx", cwd=cwd)
    assert server_target(config, Path(project) if project else None, GIVEN, NEUTRAL).cwd == starts_in


def test_a_server_of_a_project_starts_in_it() -> None:
    config = ServerConfig("x", command="./run", is_yours=False, origin="/project/.recto/agents/a/agent.toml")
    reach = server_target(config, Path("/project"), GIVEN, NEUTRAL)
    assert (reach.command, reach.cwd) == ("./run", "/project")


def test_your_relative_command_is_relative_to_the_file_that_sets_it() -> None:
    config = ServerConfig("x", command="./run", cwd=".", origin="/home/me/.recto/agents/a/agent.toml")
    assert server_target(config, Path("/project"), GIVEN, NEUTRAL).command == "/home/me/.recto/agents/a/run"
    assert server_target(replace(config, command="npx"), None, GIVEN, NEUTRAL).command == "npx"
    assert server_target(replace(config, command="~/run"), None, GIVEN, NEUTRAL).command == "/home/me/run"
    with pytest.raises(Invalid, match=r"relative command, \./run: use an absolute path"):
        server_target(replace(config, origin=""), Path("/project"), GIVEN, NEUTRAL)
