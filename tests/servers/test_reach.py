"""Reach: variables filled in, from what was given and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from recto.errors import Invalid
from recto.servers.reach import reach_of
from recto.sources.server import ServerConfig

GIVEN = {"TOKEN": "t0k", "EMPTY": "", "HOME": "/home/me"}


def test_variables_are_filled_in_everywhere() -> None:
    config = ServerConfig("x", command="${TOKEN}/run", args=("--key=${TOKEN}",), env={"A": "${B:-b}"}, cwd="${TOKEN}")
    reach = reach_of(config, Path("/project"), GIVEN)
    assert (reach.command, reach.args, reach.env) == ("t0k/run", ("--key=t0k",), {"A": "b"})
    assert reach.cwd == "/project/t0k"


def test_an_address_and_its_headers_are_filled_in() -> None:
    config = ServerConfig("x", url="https://${HOST:-example.org}/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    reach = reach_of(config, None, GIVEN)
    assert (reach.url, reach.headers) == ("https://example.org/mcp", {"Authorization": "Bearer t0k"})


@pytest.mark.parametrize(
    ("text", "filled"),
    [("${EMPTY:-d}", "d"), ("${EMPTY}", ""), ("${NO:-}", ""), ("$TOKEN", "$TOKEN"), ("~/x", "/home/me/x")],
)
def test_variables_are_filled_in_as_a_shell_has_it(text: str, filled: str) -> None:
    reach = reach_of(ServerConfig("x", command="run", cwd=text), Path("/p"), GIVEN)
    assert reach.cwd == str(Path("/p") / filled)


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(Invalid, match="x was not started: KEY and OTHER are not set"):
        reach_of(ServerConfig("x", command="run", args=("${KEY}", "${OTHER}", "${KEY}")), None, GIVEN)


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
        reach_of(config, None, GIVEN)


def test_what_may_be_done_with_the_tools_does_not_change_how_a_server_is_reached() -> None:
    config = ServerConfig("x", command="run")
    one, other = (reach_of(each, None, {}) for each in (config, replace(config, approval="allow", include="agent")))
    assert one.key == other.key
    assert reach_of(replace(config, env={"A": "b"}), None, {}).key != one.key
