import os
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import mostly_slow

from recto.errors import Invalid, RectoError
from recto.sources.documents import ImportRoots, resolve_documents
from recto.vault.imports import Import, exists_under, find_imports, resolve_import

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")


def paths(text: str, *existing: str) -> list[tuple[str, str | None]]:
    return [(each.path, each.section) for each in find_imports(text, existing.__contains__)]


@pytest.mark.parametrize(
    ("text", "path", "section"),
    [
        ("@plan.md", "plan.md", None),
        ("see @docs/plan.md please", "docs/plan.md", None),
        ("@src/main", "src/main", None),
        ("@plan.md#Goals", "plan.md", "Goals"),
        ("@docs/plan#Goals", "docs/plan", "Goals"),
        ("@~/notes/x.txt", "~/notes/x.txt", None),
        ("@/etc/hosts", "/etc/hosts", None),
        ("@./x.md", "./x.md", None),
        ("@../x.md", "../x.md", None),
        ('@"name with spaces.md"', "name with spaces.md", None),
        ('@"my plan.md#Two words"', "my plan.md", "Two words"),
        ('@"Plan"', "Plan", None),
        ('@"First voyage.md"#Tides', "First voyage.md", "Tides"),
        ('(@"First voyage.md"#Tides).', "First voyage.md", "Tides"),
        ('@"First voyage.md"#High\\ tides, then', "First voyage.md", "High tides"),
        ('@"First voyage.md#Tides"#Ebb', "First voyage.md", "Tides#Ebb"),
        ('@"First voyage.md"#', "First voyage.md", None),
        ('@"First voyage.md"#.', "First voyage.md", None),
        ('@"First voyage.md" #tag', "First voyage.md", None),
        ("@my\\ plan.md now", "my plan.md", None),
        ("(@plan.md)", "plan.md", None),
        ("„@plan.md“", "plan.md", None),
        ("**@plan.md**", "plan.md", None),
        ("请看@plan.md。", "plan.md", None),
        ("@.gitignore", ".gitignore", None),
        ("@überblick.md", "überblick.md", None),
        ("@🦊.md", "🦊.md", None),
    ],
)
def test_a_path_after_an_at_sign_is_an_import(text: str, path: str, section: str | None) -> None:
    assert paths(text) == [(path, section)]


@pytest.mark.parametrize("end", [".", ",", ";", ":", "!", "?", "...", ").", "?!", "'", "…", "，"])
def test_punctuation_at_the_end_is_not_part_of_an_import(end: str) -> None:
    assert paths(f"look at @docs/plan.md{end}") == [("docs/plan.md", None)]
    assert paths(f"look at @docs/plan.md#Goals{end}") == [("docs/plan.md", "Goals")]


@pytest.mark.parametrize(
    "text",
    [
        "write to ada@example.org or first.last+tag@sub.example.org",
        "@ada what do you think, @planner?",
        "@rule:tone and @ref:style.md",
        "@",
        "@ x",
        "@@x.md",
        '@"',
        '@""',
        "@...",
        "@2.0 is out; react@18.2.0 too",
        "https://example.org/@ada/post.html",
        "git@example.org:x/y.git",
        "\\@plan.md",
        "```python\n@app.route\n@docs/plan.md\n```",
        "`@app.route` and `@docs/plan.md`",
    ],
)
def test_addresses_names_and_code_are_not_imports(text: str) -> None:
    assert paths(text) == []


def test_an_existing_name_beats_the_rules() -> None:
    assert paths("@what?", "what?") == [("what?", None)]
    assert paths("@C#.md", "C#.md") == [("C#.md", None)]
    assert paths("@C#.md#Goals", "C#.md") == [("C#.md", "Goals")]
    assert paths("@plan(2)", "plan(2)") == [("plan(2)", None)]
    assert paths("(@plan(2))", "plan(2)") == [("plan(2)", None)]


@given(st.text(alphabet='@a./#"~\\ \n`()x:é。', max_size=60), st.booleans())
def test_imports_match_the_text_and_do_not_overlap(text: str, exists: bool) -> None:
    end = 0
    for each in find_imports(text, lambda path: exists):
        assert each.start >= end
        assert text[each.start : each.end] == each.raw
        assert each.path
        end = each.end


SIGNS = ("@", ' @"', " @a/", "@a.", "@a#", " @a.md)", "\\ ", "`@", " @!")


@pytest.mark.untraced
@pytest.mark.parametrize("piece", mostly_slow(SIGNS, ("@", "@a.", "@a#", "\\ ", "`@", " @!")))
def test_a_long_text_of_signs_is_read_in_time(piece: str) -> None:
    text = " @x" + piece * (250_000 // len(piece))
    assert all(text[each.start : each.end] == each.raw for each in find_imports(text))


# -- to a file


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    project, vault = tmp_path / "project", tmp_path / "vault"
    for place in (project / "src" / "main.py", project / "Plan.md", vault / "Plan.md", vault / "a b" / "Note.md"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"text of {place.name}")
    (tmp_path / "secret.md").write_text("secret")
    return [project, vault]


def resolved(path: str, roots: list[Path], allowed_outside: bool = False) -> str:
    found = Import(f"@{path}", path, None, 0, 0)
    return resolve_import(found, roots, allowed_outside).relative_to(roots[0].parent.resolve()).as_posix()


def test_the_first_root_that_has_it_gives_the_file(roots: list[Path]) -> None:
    assert resolved("Plan.md", roots) == "project/Plan.md"
    assert resolved("Plan.md", roots[::-1]) == "vault/Plan.md"
    assert resolved("a b/Note", roots) == "vault/a b/Note.md"
    assert resolved("../vault/Plan.md", roots) == "vault/Plan.md"
    assert resolved(str(roots[1] / "Plan.md"), roots) == "vault/Plan.md"


@pytest.mark.parametrize("on_disk", FORMS)
@pytest.mark.parametrize("typed", FORMS)
def test_an_accent_may_be_typed_as_one_character_or_as_two(roots: list[Path], on_disk: Form, typed: Form) -> None:
    name = unicodedata.normalize(on_disk, "Résumé.md")
    (roots[1] / "Übung").mkdir()
    (roots[1] / "Übung" / name).write_text("x")
    wanted = unicodedata.normalize(typed, "Übung/Résumé.md")
    assert resolved(wanted, roots) == f"vault/Übung/{name}"
    assert resolved(wanted.removesuffix(".md"), roots) == f"vault/Übung/{name}"
    assert exists_under(roots)(wanted)


@pytest.mark.parametrize(
    "path",
    ["../secret.md", "src/../../secret.md", "door.md", "door", "/etc/hosts", "~/x.md", "../nowhere.md", "../é.md"],
)
def test_nothing_outside_is_read_unless_allowed(roots: list[Path], path: str) -> None:
    (roots[0] / "door.md").symlink_to("../secret.md")
    with pytest.raises(Invalid, match="outside the project and the vault"):
        resolved(path, roots)


def test_files_outside_are_found_if_allowed(roots: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(roots[0].parent))
    assert resolved("../secret.md", roots, allowed_outside=True) == "secret.md"
    assert resolved("~/secret.md", roots, allowed_outside=True) == "secret.md"


@pytest.mark.parametrize(
    "path", ["nothing.md", "a\0b.md", "x" * 5000, "Plan.md/x.md", "loop.md", "\ud800.md", "src/nothing"]
)
def test_a_missing_file_is_one_sentence(roots: list[Path], path: str) -> None:
    (roots[0] / "loop.md").symlink_to("loop.md")
    with pytest.raises(RectoError, match="matches no file") as failure:
        resolved(path, roots)
    assert len(failure.value.message) < 200
    failure.value.message.encode()


def test_a_folder_lists_its_files(roots: list[Path]) -> None:
    with pytest.raises(Invalid, match=r"@src is a folder; name one of its files: main\.py"):
        resolved("src", roots)
    (roots[0] / "empty").mkdir()
    with pytest.raises(Invalid, match="it has no files"):
        resolved("empty", roots)
    for n in range(9):
        (roots[0] / "empty" / f"{n}.md").write_text("")
    with pytest.raises(Invalid, match=r"0\.md, 1\.md, 2\.md, 3\.md, 4\.md …"):
        resolved("empty", roots)


def test_a_huge_file_a_pipe_and_an_unreadable_one_are_one_sentence(
    roots: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (roots[0] / "huge.log").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(Invalid, match=r"has 100\.0 MB; at most 2 MB"):
        resolved("huge.log", roots)
    os.mkfifo(roots[0] / "pipe.md")
    with pytest.raises(Invalid, match="not a regular file"):
        resolved("pipe.md", roots)

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Invalid, match=r"cannot read @Plan\.md: Permission denied"):
        resolved("Plan.md", roots)


@pytest.mark.parametrize(
    ("text", "path", "lines"),
    [
        ("see @todo.txt:3.", "todo.txt", (3, 3)),
        ("@src/app.py:10-20, please", "src/app.py", (10, 20)),
        ("@todo.txt:", "todo.txt", None),
    ],
)
def test_lines_may_be_named(text: str, path: str, lines: tuple[int, int] | None) -> None:
    [found] = find_imports(text)
    assert (found.path, found.lines) == (path, lines)
    assert find_imports("@ada:3 and bob@example.com:3") == []


def test_named_lines_are_what_is_included(tmp_path: Path) -> None:
    (tmp_path / "todo.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.md").write_text("1")
    roots = ImportRoots(tmp_path)
    assert [each.text for each in resolve_documents("@todo.txt:2-3", None, roots)] == ["two\nthree\n"]
    [beyond] = resolve_documents("@todo.txt:9", None, roots)
    assert (beyond.text, beyond.lacking) == ("one\ntwo\nthree\n", "todo.txt has 3 lines, and none from 9 to 9")
    [folder] = resolve_documents("see @sub/ please", None, roots)
    assert "name one of its files: one.md" in (folder.problem or "")
