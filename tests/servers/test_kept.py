"""Kept lists: the same tools come back, for a day."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from recto.servers.kept import Kept, key_of
from recto.servers.listing import Listed, Listing
from recto.sources.server import ServerConfig

LISTING = Listing((Listed("add", "Adds – really.", {"type": "object"}),), ("a note",))


def test_a_list_comes_back_as_it_was(tmp_path: Path) -> None:
    Kept(tmp_path).write("key", LISTING)
    assert Kept(tmp_path).read("key") == LISTING
    assert Kept(tmp_path).read("other") is None


@pytest.mark.parametrize("age_s", [24 * 3600 + 1, -3600])
def test_a_list_of_another_day_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float) -> None:
    Kept(tmp_path).write("key", LISTING)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age_s)
    assert Kept(tmp_path).read("key") is None


@pytest.mark.parametrize(
    "change",
    [{"format": 0}, {"tools": None}, {"tools": [{}]}, {"tools": [{"name": 1, "description": "", "schema": {}}]}],
)
def test_a_file_that_is_not_a_list_is_none(tmp_path: Path, change: dict[str, object]) -> None:
    Kept(tmp_path).write("key", LISTING)
    file = tmp_path / "servers" / "key.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert Kept(tmp_path).read("key") is None


def test_a_list_can_be_forgotten_and_not_being_written_is_no_error(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.write("key", LISTING)
    kept.forget("key")
    assert kept.read("key") is None
    (tmp_path / "file").write_text("")
    Kept(tmp_path / "file").write("key", LISTING)
    Kept(tmp_path / "file").forget("key")


def test_a_list_is_kept_by_how_the_server_is_reached() -> None:
    config = ServerConfig("x", command="run")
    assert key_of(config, None) == key_of(replace(config, approval="deny", timeout_s=3.0), Path("/p"))
    assert key_of(config, None) != key_of(replace(config, args=("a",)), None)


def test_what_comes_with_a_project_has_a_list_of_its_own() -> None:
    config = ServerConfig("x", command="./run", is_yours=False)
    assert key_of(config, Path("/one")) != key_of(config, Path("/two"))


def test_the_list_of_a_server_that_runs_in_a_project_is_that_projects_own() -> None:
    one, other = Path("/one"), Path("/other")
    for said in ({"cwd": "."}, {"args": ("${RECTO_PROJECT}",)}, {"is_yours": False}):
        config = replace(ServerConfig("x", command="run"), **said)
        assert key_of(config, one) != key_of(config, other)
    for said in ({"cwd": "/srv"}, {"cwd": "~/srv"}, {"args": ("a",)}):
        config = replace(ServerConfig("x", command="run"), **said)
        assert key_of(config, one) == key_of(config, other)
