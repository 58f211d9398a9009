"""The vault from the command line: what there is in it, and what is found."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.terminal import Terminal
from tests.conftest import Script


@pytest.fixture
def boat(tmp_path: Path) -> Path:
    """A vault with links of every kind, a broken one, two notes of one name, and one whose properties are no YAML."""
    root = tmp_path / "boat"
    texts = {
        "Welcome.md": "# Welcome\n\nStart with [[Budget]] and [[Engine#Serial number|the engine]].\n\n![[plan.svg]]\n",
        "Budget.md": "---\ntags: [money]\naliases: [Costs]\n---\n# Budget\n\nTimber cost 4,200. See [[Engin]].\n",
        "parts/Engine.md": "# Engine\n\nA diesel.\n\n## Serial number\n\nIt is HX-2219, says [[Budget]].\n",
        "people/Notes.md": "Maren sails.\n",
        "parts/Notes.md": "Bolts of bronze.\n",
        "Odd.md": "---\ntitle: [unclosed\n---\nStill here.\n",
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "plan.svg").write_text("<svg/>")
    return root


def at(root: Path) -> tuple[str, str]:
    return ("--vault", str(root))


# -- which vault


def test_the_vault_of_the_settings_is_meant_unless_another_is_named(
    run: Run, boat: Path, notes: Path, tmp_path: Path
) -> None:
    assert json.loads(failure(run("vault", "search", "x", "--json")))["error"]["type"] == "Invalid"
    assert run("config", "set", "vault", str(boat)).exit_code == 0
    assert one(run("vault", "status", "--json"))["vault"] == str(boat)
    assert one(run("vault", "status", *at(notes), "--json"))["vault"] == str(notes)
    (tmp_path / "file").write_text("x")
    for nowhere in ("nowhere", "file"):
        failure(run("vault", "index", *at(tmp_path / nowhere)))


# -- index, status


def test_index_says_what_changed_and_what_is_wrong(run: Run, boat: Path) -> None:
    first = one(run("vault", "index", *at(boat), "--json"))
    told = [first[name] for name in ("notes", "attachments", "links", "broken", "indexed", "vectors")]
    assert told == [6, 1, 5, 1, 6, 0]
    assert len(first["added"]) == 7
    assert [each["path"] for each in first["problems"]] == ["Odd.md"]
    (boat / "Budget.md").write_text("Less.\n")
    (boat / "people" / "Notes.md").unlink()
    with (boat / "Huge.md").open("wb") as file:
        file.truncate(100_000_000)
    second = one(run("vault", "index", *at(boat), "--json"))
    assert (second["changed"], second["removed"]) == (["Budget.md"], ["people/Notes.md"])
    assert "Huge.md" in second["unreadable"]
    shown = run("vault", "index", *at(boat)).stdout
    assert ("⚠ Odd.md: the front matter is not valid YAML" in shown, shown.count("Huge.md")) == (True, 1)
    assert run("vault", "index", *at(boat), "--vectors").exit_code == 1, "nobody can make them"


def test_status_tells_where_the_index_lies_and_indexes_nothing(run: Run, boat: Path, home: Path) -> None:
    told = one(run("vault", "status", *at(boat), "--json"))
    assert (told["notes"], told["indexed"], told["sections"]) == (6, 0, 0)
    assert Path(told["index"]).is_relative_to(home)
    run("vault", "index", *at(boat))
    told = one(run("vault", "status", *at(boat), "--json"))
    assert (told["indexed"], told["sections"] >= 6, told["size"] > 0) == (6, True, True)
    assert not [path for path in boat.rglob("*") if path.suffix == ".db"]
    for file in Path(told["index"]).glob("*.db"):
        file.write_bytes(b"no database at all" * 1000)
    done = run("vault", "search", "timber", *at(boat), "--json")
    assert one(done)["documents"][0]["path"] == "Budget.md"
    assert "being rebuilt" in done.stderr


# -- search


def test_a_change_is_found_at_once_and_what_is_gone_is_not(run: Run, boat: Path) -> None:
    run("vault", "index", *at(boat))
    (boat / "Sails.md").write_text("The spinnaker is crimson.\n")
    (boat / "people" / "Notes.md").unlink()
    assert one(run("vault", "search", "spinnaker", *at(boat), "--json"))["documents"][0]["path"] == "Sails.md"
    assert one(run("vault", "search", "Maren", *at(boat), "--json"))["documents"] == []


def test_operators_are_words_like_others(run: Run, boat: Path) -> None:
    for query in ('"timber" OR (', "timber NEAR/3 x*", "timber " * 10_000, "timber 東京 ⛵"):
        assert one(run("vault", "search", query, *at(boat), "--json"))["documents"][0]["path"] == "Budget.md"


def test_two_vaults_with_the_same_names_do_not_mix(run: Run, boat: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "boat"
    other.mkdir(parents=True)
    (other / "Budget.md").write_text("Only oranges.\n")
    for root, word, found in ((boat, "timber", 1), (other, "timber", 0), (other, "oranges", 1), (boat, "oranges", 0)):
        assert len(one(run("vault", "search", word, *at(root), "--json"))["documents"]) == found, (root, word)


def test_paths_are_links_on_a_terminal(terminal: type[Terminal], boat: Path) -> None:
    search = terminal("vault", "search", "timber", *at(boat))
    search.wait_for(f"\x1b]8;;{(boat / 'Budget.md').as_uri()}\x1b\\Budget.md\x1b]8;;\x1b\\")
    assert search.code() == 0


def test_every_command_over_a_vault_takes_settings(run: Run, boat: Path) -> None:
    for words in ("status", "search timber", "broken", "links Budget", "stats"):
        done = run("vault", *words.split(), "--set", f"vault={boat}", "--set", "search.embedder=none")
        assert done.exit_code == 0, done.stderr


# -- suggest


def test_suggest_is_about_a_conversation_and_its_vault(run: Run, script: Script, boat: Path) -> None:
    failure(run("vault", "suggest", *at(boat)))
    run("ask", "-m", script({"text": "Yes."}), "xyzzy")
    failure(run("vault", "suggest"))
    done = run("vault", "suggest", *at(boat))
    assert (done.exit_code, done.stdout) == (0, "")
    run("ask", "-m", script({"text": "ok"}), *at(boat), "What did the timber cost?")
    home = rows(run("conversations", "list", "--json"))[0]["id"]
    assert {row["conversation"] for row in rows(run("vault", "suggest", *at(boat), "--json"))} == {home}
    assert "Budget.md" in run("vault", "suggest").stdout, "by the vault of the conversation"
