"""Trust: by project, and by the whole config of a server."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from recto.errors import RectoError
from recto.mcp.server_files import Trust
from recto.sources.server_config import ServerConfig

THEIRS = ServerConfig("build", command="make", args=("serve",), is_yours=False)


def test_your_own_servers_need_no_trust(tmp_path: Path) -> None:
    assert Trust(tmp_path).is_trusted(replace(THEIRS, is_yours=True), tmp_path)


def test_a_server_of_a_project_is_trusted_only_after_trust(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    assert not trust.is_trusted(THEIRS, tmp_path)
    trust.trust(THEIRS, tmp_path)
    assert Trust(tmp_path).is_trusted(THEIRS, tmp_path)


def test_a_server_that_changes_is_no_longer_trusted(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    trust.trust(THEIRS, tmp_path)
    assert not trust.is_trusted(replace(THEIRS, args=("serve", "--everything")), tmp_path)


def test_trust_applies_to_one_project_only(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    trust.trust(THEIRS, tmp_path / "one")
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
