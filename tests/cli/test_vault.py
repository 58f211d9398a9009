"""The vault from the command line: what there is in it, and what is found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.terminal import Terminal
from tests.cli.test_main import HEAVY
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


@pytest.mark.parametrize("args", [["vault", "--help"], ["vault", "search", "--help"], ["vault", "stats", "--help"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = (
        f"import sys\nfrom recto.cli.main import recto\ntry:\n    recto.main({args!r})\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {(*HEAVY, 'recto.vault.vault', 'recto.settings.settings')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# -- which vault


def test_a_command_without_a_vault_says_how_to_name_one(run: Run) -> None:
    assert "give --vault DIR, or set one with `recto config set vault DIR`" in failure(run("vault", "status"))
    told = json.loads(failure(run("vault", "search", "x", "--json")))
    assert told["error"]["type"] == "Invalid"


def test_the_vault_of_the_settings_is_meant_unless_another_is_named(run: Run, boat: Path, notes: Path) -> None:
    assert run("config", "set", "vault", str(boat)).exit_code == 0
    assert one(run("vault", "status", "--json"))["vault"] == str(boat)
    assert one(run("vault", "status", *at(notes), "--json"))["vault"] == str(notes)


def test_a_vault_that_is_none_is_told_in_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "there is no folder" in failure(run("vault", "index", *at(tmp_path / "nowhere")))
    assert "is a file" in failure(run("vault", "search", "x", *at(tmp_path / "file")))


# -- index, status


def test_index_says_what_changed_and_what_is_wrong(run: Run, boat: Path) -> None:
    first = one(run("vault", "index", *at(boat), "--json"))
    assert {name: first[name] for name in ("notes", "attachments", "links", "broken", "indexed")} == {
        "notes": 6,
        "attachments": 1,
        "links": 5,
        "broken": 1,
        "indexed": 6,
    }
    assert len(first["added"]) == 7
    assert [each["path"] for each in first["problems"]] == ["Odd.md"]
    assert (first["vectors"], first["embedder"]) == (0, None)
    (boat / "Budget.md").write_text("Less.\n")
    (boat / "people" / "Notes.md").unlink()
    second = one(run("vault", "index", *at(boat), "--json"))
    assert (second["added"], second["changed"], second["removed"]) == ([], ["Budget.md"], ["people/Notes.md"])
    told = run("vault", "index", *at(boat)).stdout
    assert "changes     none" in told
    assert "⚠ Odd.md: the front matter is not valid YAML" in told


def test_status_tells_where_the_index_lies_and_indexes_nothing(run: Run, boat: Path, home: Path) -> None:
    told = one(run("vault", "status", *at(boat), "--json"))
    assert (told["notes"], told["indexed"], told["sections"]) == (6, 0, 0)
    assert Path(told["index"]).is_relative_to(home)
    run("vault", "index", *at(boat))
    told = one(run("vault", "status", *at(boat), "--json"))
    assert told["indexed"] == 6
    assert told["sections"] >= 6
    assert told["size"] > 0
    lines = run("vault", "status", *at(boat)).stdout.splitlines()
    assert lines[0] == f"vault       {boat}"
    assert "links       5; 1 broken (`recto vault broken`)" in lines
    assert not [path for path in boat.rglob("*") if path.suffix == ".db"]


def test_vectors_that_nobody_can_make_are_a_failure_only_when_asked_for(run: Run, boat: Path) -> None:
    assert run("vault", "index", *at(boat)).exit_code == 0
    assert run("vault", "index", *at(boat), "--no-vectors").exit_code == 0
    assert run("vault", "index", *at(boat), "--vectors").exit_code == 1


def test_a_note_that_cannot_be_read_is_named(run: Run, boat: Path) -> None:
    with (boat / "Huge.md").open("wb") as file:
        file.truncate(100_000_000)
    done = run("vault", "index", *at(boat))
    assert done.exit_code == 0
    assert done.stdout.count("Huge.md") == 1
    assert "Huge.md" in one(run("vault", "index", *at(boat), "--json"))["unreadable"]


# -- search


def test_so_many_are_shown_as_were_asked_for(run: Run, boat: Path) -> None:
    found = one(run("vault", "search", "engine budget", *at(boat), "-n", "1", "--excerpts", "0", "--json"))
    assert (len(found["documents"]), found["excerpts"]) == (1, [])
    found = one(run("vault", "search", "engine budget", *at(boat), "--documents", "0", "--excerpts", "2", "--json"))
    assert (found["documents"], len(found["excerpts"])) == ([], 2)


def test_a_change_is_found_at_once_and_what_is_gone_is_not(run: Run, boat: Path) -> None:
    run("vault", "index", *at(boat))
    (boat / "Sails.md").write_text("The spinnaker is crimson.\n")
    (boat / "people" / "Notes.md").unlink()
    assert one(run("vault", "search", "spinnaker", *at(boat), "--json"))["documents"][0]["path"] == "Sails.md"
    assert one(run("vault", "search", "Maren", *at(boat), "--json"))["documents"] == []


@pytest.mark.parametrize("query", ['"timber" OR (', "timber NEAR/3 x*", "timber " * 10_000, "timber 東京 ⛵"])
def test_operators_are_words_like_others(run: Run, boat: Path, query: str) -> None:
    assert one(run("vault", "search", query, *at(boat), "--json"))["documents"][0]["path"] == "Budget.md"


def test_a_damaged_index_is_rebuilt(run: Run, boat: Path) -> None:
    run("vault", "index", *at(boat))
    where = Path(one(run("vault", "status", *at(boat), "--json"))["index"])
    for file in where.glob("*.db"):
        file.write_bytes(b"no database at all" * 1000)
    done = run("vault", "search", "timber", *at(boat), "--json")
    assert one(done)["documents"][0]["path"] == "Budget.md"
    assert "being rebuilt" in done.stderr


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


def test_status_tells_the_number_of_notes_before_they_are_indexed(run: Run, boat: Path, tmp_path: Path) -> None:
    shown = run("vault", "status", *at(boat)).stdout
    assert "notes       6\n" in shown
    assert "sections    none: the notes are not indexed yet (the first search or `recto vault index` does it)" in shown
    assert one(run("vault", "status", *at(boat), "--json"))["notes"] == 6
    run("vault", "index", "--no-vectors", *at(boat))
    assert "in 6 indexed notes" in run("vault", "status", *at(boat)).stdout
    (tmp_path / "bare").mkdir()
    assert "not indexed yet" not in run("vault", "status", *at(tmp_path / "bare")).stdout


def test_every_command_over_a_vault_takes_settings(run: Run, boat: Path) -> None:
    for words in (["status"], ["search", "timber"], ["broken"], ["links", "Budget"], ["stats"], ["resolve", "Budget"]):
        done = run("vault", *words, "--set", f"vault={boat}", "--set", "search.embedder=none")
        assert done.exit_code == 0, done.stderr
    assert "embedder    none" in run("vault", "status", *at(boat), "--set", "search.embedder=none").stdout
    assert "there is no setting serch.embedder" in failure(
        run("vault", "status", *at(boat), "--set", "serch.embedder=x")
    )


# -- suggest


def test_suggest_knows_the_vault_of_the_conversation(run: Run, script: Script, boat: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), *at(boat), "Which timber?")
    assert "Budget.md" in run("vault", "suggest").stdout


def test_suggest_names_the_conversation_it_speaks_of(run: Run, script: Script, boat: Path) -> None:
    run("ask", "-m", script({"text": "ok"}), *at(boat), "What did the timber cost?")
    [home] = rows(run("conversations", "list", "--json"))
    heading = run("vault", "suggest", *at(boat)).stdout.splitlines()[0]
    assert heading == "For conversation #1 (What did the timber cost?)"
    assert {row["conversation"] for row in rows(run("vault", "suggest", *at(boat), "--json"))} == {home["id"]}


def test_suggest_without_anything_to_go_by(run: Run, script: Script, boat: Path) -> None:
    assert "there is no conversation yet" in failure(run("vault", "suggest", *at(boat)))
    run("ask", "-m", script({"text": "Yes."}), "xyzzy")
    assert "no vault is named" in failure(run("vault", "suggest"))
    done = run("vault", "suggest", *at(boat))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no other document of the vault bears on conversation #1 (xyzzy)" in done.stderr


# -- which documents conversations use


@pytest.fixture
def talked(run: Run, script: Script, boat: Path) -> Path:
    """Two conversations over the vault: one names two documents, the other one of them twice."""
    model = script({"text": "Yes."})
    assert run("ask", "-m", model, *at(boat), "What of [[Budget]], [[Engine]] and [[Nowhere]]?").exit_code == 0
    for _ in range(2):
        assert run("ask", "-m", model, *at(boat), "And [[Budget]]?").exit_code == 0
    return boat


def test_no_more_are_shown_than_asked_for_and_the_rest_is_said(run: Run, talked: Path) -> None:
    done = run("vault", "stats", *at(talked), "--limit", "1", "--json")
    assert len(rows(done)) == 1
    assert done.stderr == "note: and 1 more: --limit shows them\n"


def test_the_graph_of_a_vault_that_nobody_used(run: Run, boat: Path) -> None:
    done = run("vault", "graph", *at(boat), "--used")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no document of this vault was used" in done.stderr
