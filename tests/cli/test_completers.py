"""Completion of links, paths and sources while a message is typed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document
from tests.cli.test_vault import boat
from tests.conftest import examples

from recto.api.suggestions import note_names
from recto.cli.prompt import AgentCompleter, FileCompleter, LinkCompleter, SlashCompleter
from recto.cli.slash import COMMANDS
from recto.vault.links import find_links
from recto.vault.vault import Vault

__all__ = ["boat"]


@pytest.fixture
def vault(boat: Path) -> Iterator[Vault]:
    opened = Vault(boat)
    yield opened
    opened.close()


def offered(completer: Completer, before: str, after: str = "") -> list[str]:
    """The message as it would be with each of what is offered."""
    document = Document(before + after, len(before))
    found = completer.get_completions(document, CompleteEvent())
    return [before[: len(before) + each.start_position] + each.text + after for each in found]


# -- slash commands


def test_commands_and_their_words_are_completed() -> None:
    completer = SlashCompleter({name: (known.help, known.words) for name, known in COMMANDS.items()})

    def completed(typed: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(typed), CompleteEvent())]

    assert completed("/un") == ["/uncompact", "/unpin", "/unset", "/undo"]
    assert completed("/strategy ") == ["discard", "summarize", "hybrid", "default"]
    assert completed("/summary e") == ["edit"]
    assert completed("/tools ") == ["add", "remove", "mode", "all", "ask"]
    assert completed("/nothing x") == completed("un") == completed("/compact the") == []


# -- [[links]]


def test_a_name_is_completed_and_closed(vault: Vault) -> None:
    links = LinkCompleter(lambda: vault)
    assert offered(links, "see [[bud")[0] == "see [[Budget]]"
    assert offered(links, "[[bud", "]] and more")[0] == "[[Budget]] and more"
    assert offered(links, "[[bud", "] x")[0] == "[[Budget]] x"
    assert offered(links, "![[pl")[0] == "![[plan.svg]]"
    assert set(offered(links, "[[notes")) == {"[[people/Notes]]", "[[parts/Notes]]"}
    assert len(every := offered(links, "[[")) >= 7
    assert every[0] == "[[plan.svg]]", "it was written last"
    (engine,) = links.get_completions(Document("[[engine", 8), CompleteEvent())
    assert (engine.display_text, engine.display_meta_text) == ("Engine", "parts/")


def test_headings_are_completed_behind_a_name(vault: Vault) -> None:
    links = LinkCompleter(lambda: vault)
    assert offered(links, "[[Engine#") == ["[[Engine#Engine]]", "[[Engine#Serial number]]"]
    assert offered(links, "[[engine#ser") == ["[[engine#Serial number]]"]
    assert offered(links, "[[Engine#Engine#ser") == ["[[Engine#Engine#Serial number]]"]
    assert offered(links, "[[Nope#") == []
    assert offered(links, "[[#") == []


@pytest.mark.parametrize(
    "name", ["a [[b", "a]] b", "a|b", "a^b", "a\nb", "a\x1bb", "a\u202eb", " a", "a ", "a`b`[[", "a]"]
)
def test_a_name_that_no_link_can_hold_is_not_offered(vault: Vault, name: str) -> None:
    vault.write(f"odd/{name}.md", "---\naliases: [Peculiar]\n---\n")
    links = LinkCompleter(lambda: vault)
    offers = [*offered(links, "[[a"), *offered(links, "[[odd"), *offered(links, "[[pecul")]
    assert not [each for each in offers if "odd/" in each or name in each or "Peculiar" in each]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text("ab[]|^#`%<!-\\ .é\n", min_size=1, max_size=6), min_size=1, max_size=4),
    st.text("ab[]|^#`%\n", max_size=6),
)
def test_every_link_that_is_offered_leads_to_its_note(tmp_path: Path, names: list[str], alias: str) -> None:
    with TemporaryDirectory(dir=tmp_path) as root:
        for name in names:
            (Path(root) / f"x{name}.md").write_text(f"---\naliases: [{json.dumps(alias)}]\n---\n")
        vault = Vault(Path(root))
        for choice in note_names(vault):
            (link,) = find_links(f"see [[{choice.insert}]] there")
            assert link.inner == choice.insert
            assert vault.resolve(link) == f"{choice.insert.partition('|')[0]}.md"
        vault.close()


@pytest.mark.parametrize(
    "typed", ["", "bud", "[bud", "[[Budget]]", "[[Budget]] bud", "[[bud|", "[[bud|cap", "[[bud\n", "/context", "[[zzzz"]
)
def test_nothing_is_offered_where_no_link_is_being_typed(vault: Vault, typed: str) -> None:
    assert offered(LinkCompleter(lambda: vault), typed) == []


def test_without_a_vault_or_with_one_that_is_gone_nothing_is_offered(vault: Vault) -> None:
    assert offered(LinkCompleter(lambda: None), "[[bud") == []
    vault.root.rename(vault.root.with_name("away"))
    assert offered(LinkCompleter(lambda: vault), "[[bud") == []
    assert offered(LinkCompleter(lambda: vault), "[[Engine#") == []
    assert offered(FileCompleter(lambda: vault, None), "@bud") == []


# -- @paths


def test_paths_of_vault_and_project_are_completed(vault: Vault, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "engine.py").write_text("x = 1\n")
    (project / "my plan.md").write_text("x\n")
    (project / ".env").write_text("secret\n")
    files = FileCompleter(lambda: vault, project)
    assert set(offered(files, "read @engine")) == {"read @src/engine.py", "read @parts/Engine.md"}
    assert offered(files, "read @my")[0] == 'read @"my plan.md"'
    assert offered(files, 'read @"my pl')[0] == 'read @"my plan.md"'
    assert offered(files, "(@src/e") == ["(@src/engine.py"]
    assert offered(files, "@env") == []
    assert offered(FileCompleter(lambda: vault, vault.root.parent), "@budg") == ["@Budget.md"], "once, though in both"


@pytest.mark.parametrize("typed", ["", "@1", "me@", "me@bud", "a@b.c", "@/", '@"', "@bud ", "bud", "@@bud"])
def test_what_is_no_path_is_left_alone(vault: Vault, typed: str) -> None:
    assert offered(FileCompleter(lambda: vault, None), typed) == []


def test_a_bare_at_offers_files_that_changed_last_first(tmp_path: Path) -> None:
    for age, name in enumerate(("new.md", "src/older.py", "2024.md", "oldest one.md")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    files = FileCompleter(lambda: None, tmp_path)
    expected = ["see @new.md", "see @src/older.py", "see @2024.md", 'see @"oldest one.md"']
    assert offered(files, "see @") == expected


def test_agents_are_offered_where_a_message_begins() -> None:
    agents = AgentCompleter(lambda: ["default", "reviewer"])
    assert offered(agents, "@") == ["@default", "@reviewer"]
    assert offered(agents, "@rev") == ["@reviewer"]
    assert offered(agents, "ask @rev") == offered(agents, "@reviewer ") == offered(agents, "") == []


def test_a_mention_of_a_source_is_no_path(vault: Vault) -> None:
    vault.write("rule/style.md", "x")
    assert offered(FileCompleter(lambda: vault, None), "@rule:sty") == []
    assert offered(FileCompleter(lambda: vault, None), "@Rule:sty") == []
    assert offered(FileCompleter(lambda: vault, None), "@rule/sty") == ["@rule/style.md"]
