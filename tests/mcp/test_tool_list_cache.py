"""ToolListCache: the same tools are read again, for a day."""

import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from recto.mcp.server_files import ListedTool, ToolList, ToolListCache, cache_key
from recto.sources.server_config import ServerConfig

LISTING = ToolList((ListedTool("add", "Adds – really.", {"type": "object"}),), ("a note",))


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    assert ToolListCache(tmp_path).read("key") == LISTING
    assert ToolListCache(tmp_path).read("other") is None


@pytest.mark.parametrize("age_s", [24 * 3600 + 1, -3600])
def test_a_list_older_than_a_day_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age_s)
    assert ToolListCache(tmp_path).read("key") is None


@pytest.mark.parametrize(
    "change",
    [{"format": 0}, {"tools": None}, {"tools": [{}]}, {"tools": [{"name": 1, "description": "", "schema": {}}]}],
)
def test_an_invalid_file_is_not_read(tmp_path: Path, change: dict[str, object]) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    file = tmp_path / "servers" / "key.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert ToolListCache(tmp_path).read("key") is None


def test_a_list_can_be_forgotten_and_a_failed_write_is_no_error(tmp_path: Path) -> None:
    kept = ToolListCache(tmp_path)
    kept.write("key", LISTING)
    kept.forget("key")
    assert kept.read("key") is None
    (tmp_path / "file").write_text("")
    ToolListCache(tmp_path / "file").write("key", LISTING)
    ToolListCache(tmp_path / "file").forget("key")


def test_the_cache_key_depends_on_the_target_only() -> None:
    config = ServerConfig("x", command="run")
    assert cache_key(config, None) == cache_key(replace(config, approval="deny", timeout_s=3.0), Path("/p"))
    assert cache_key(config, None) != cache_key(replace(config, args=("a",)), None)


def test_a_server_of_a_project_has_a_list_of_its_own() -> None:
    config = ServerConfig("x", command="./run", is_yours=False)
    assert cache_key(config, Path("/one")) != cache_key(config, Path("/two"))


def test_a_server_that_runs_in_a_project_has_a_list_for_each_project() -> None:
    one, other = Path("/one"), Path("/other")
    for said in ({"cwd": "."}, {"args": ("${RECTO_PROJECT}",)}, {"is_yours": False}):
        config = replace(ServerConfig("x", command="run"), **said)
        assert cache_key(config, one) != cache_key(config, other)
    for said in ({"cwd": "/srv"}, {"cwd": "~/srv"}, {"args": ("a",)}):
        config = replace(ServerConfig("x", command="run"), **said)
        assert cache_key(config, one) == cache_key(config, other)
