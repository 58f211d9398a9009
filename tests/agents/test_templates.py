"""Prompts in files: filled with variables, from the user's folder and from a project."""

from pathlib import Path

import pytest

from recto.agents.templates import Template, read_template, template_names
from recto.errors import Invalid, NotFound


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "templates").mkdir(parents=True)
    return tmp_path / "home"


def write(home: Path, name: str, text: str) -> Path:
    path = home / "templates" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_template_has_a_prompt_variables_and_what_holds_for_the_call(home: Path) -> None:
    head = "---\ndescription: Sums up\nmodel: openai:gpt-4o\nsystem: Be terse.\ndefaults:\n  count: 3\n---\n"
    write(home, "sum", f"{head}Sum this up in $count points for $reader:\n\n$input\n")
    found = read_template("sum", home, None)
    assert (found.description, found.model, found.system) == ("Sums up", "openai:gpt-4o", "Be terse.")
    assert found.variables == ["count", "reader"]
    filled = found.fill({"reader": "sailors"}, "a $5 text")
    assert filled == "Sum this up in 3 points for sailors:\n\na $5 text"


def test_what_is_given_comes_last_where_the_template_does_not_say_where() -> None:
    template = Template("short", "Be short; it costs $$5.")
    assert template.fill({}, "Why?") == "Be short; it costs $5.\n\nWhy?"
    assert template.fill({}, "  ") == "Be short; it costs $5."


def test_a_variable_without_value_and_one_that_there_is_not_are_named() -> None:
    template = Template("mail", "To $who: $input")
    with pytest.raises(Invalid, match="needs a value: -p who="):
        template.fill({}, "x")
    with pytest.raises(Invalid, match="has no variable whom; it has: who"):
        template.fill({"who": "a", "whom": "b"}, "x")


def test_a_template_that_is_not_there_is_told_with_those_that_are(home: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no template sum; a file templates/sum.md in .* would be one"):
        read_template("sum", home, None)
    write(home, "mail", "x")
    write(home, "list", "x")
    with pytest.raises(NotFound, match="there are: list, mail"):
        read_template("sum", home, None)
    assert template_names(home, None) == ["list", "mail"]


@pytest.mark.parametrize("name", ["../secret", "a/b", "..\\secret", ""])
def test_a_name_leads_nowhere_else(home: Path, name: str) -> None:
    (home / "secret.md").write_text("secret", "utf-8")
    with pytest.raises(NotFound):
        read_template(name, home, None)


def test_a_projects_template_comes_first_and_does_not_choose_the_model(home: Path, tmp_path: Path) -> None:
    write(home, "sum", "mine")
    write(tmp_path / "project" / ".recto", "sum", "---\nmodel: evil:model\n---\ntheirs")
    found = read_template("sum", home, tmp_path / "project")
    assert (found.text, found.model) == ("theirs", "")
    assert found.note == "the template sum is the project's: its model is ignored"


@pytest.mark.parametrize(
    ("text", "why"), [("costs $ 5", "a lone \\$"), ("x" * 1_000_001, "more than a megabyte")], ids=["dollar", "large"]
)
def test_a_file_that_is_no_template_is_refused(home: Path, text: str, why: str) -> None:
    write(home, "odd", text)
    with pytest.raises(Invalid, match=why):
        read_template("odd", home, None)
