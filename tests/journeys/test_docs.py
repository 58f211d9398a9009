"""The pages in docs/ say what the code does: every setting, field, key, tool and command they name is there, and what
search.md, vault.md, sources.md and agent-mode.md show is run.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner
from tests.conftest import Open, Script
from tests.journeys.boat import ASKED, REPLY, last_text, tell, write_script
from tests.journeys.commands import in_a_process, in_this_process

from recto.agents.agent_file import AGENT_SPECS, FRONT_MATTER_KEYS, TABLES, read_agent_file, read_source_file
from recto.agents.agents import Agents
from recto.agents.server_table import ServerEntry
from recto.api.blocking import open_desk
from recto.chat.blocks import Compaction, ToolResult
from recto.cli.main import recto
from recto.cli.slash import COMMANDS
from recto.settings import settings
from recto.settings.spec import Spec
from recto.sources.advice import SIGNS
from recto.sources.source import APPROVALS, INCLUDES, Pick, Rule
from recto.sources.tools import RECALL_TOOL
from recto.sources.vault_tools import reading_tools, writing_tools
from recto.tasks.plan import PLAN_TOOL, STATUSES
from recto.tasks.run import RunStatus
from recto.turn.approvals import Verdict
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

ROOT = Path(__file__).parents[2]
COMPACTION = (ROOT / "docs" / "compaction.md").read_text()
SEARCH = (ROOT / "docs" / "search.md").read_text()
VAULT = (ROOT / "docs" / "vault.md").read_text()
SOURCES = (ROOT / "docs" / "sources.md").read_text()
MODELS = (ROOT / "docs" / "models.md").read_text()
CHAT = (ROOT / "docs" / "chat.md").read_text()
TOKENS = (ROOT / "docs" / "tokens.md").read_text()
TROUBLE = (ROOT / "docs" / "troubleshooting.md").read_text()
AGENT_MODE = (ROOT / "docs" / "agent-mode.md").read_text()
PAGES = COMPACTION + SEARCH + VAULT + SOURCES + CHAT + TOKENS + TROUBLE + AGENT_MODE
README = (ROOT / "README.md").read_text()
# the design also names what is to come, and paths of servers
FOR_USERS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "design.md"]
EVERY_PAGE = [README, *(page.read_text() for page in FOR_USERS)]
PATHS_OF_SERVERS = {"props"}
COMMAND = re.compile(r"(?:`|^|\$ )recto ([a-z]+ [a-z][a-z-]*)", re.MULTILINE)
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_SCORE = re.compile(r"\b[01]\.\d\d\b")
# int8 kernels differ between processors: scores that are nearer than this may be the other way round elsewhere
APART = 0.1
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
Run = Callable[[str], str]
READS = {"name": "read_document", "arguments": {"path": "boat/Rigging.md", "section": "Reefing"}}
ANSWERS = {"text": "From 24 knots on, and the jib comes in as well."}
CALLS: dict[str, dict[str, Any]] = {
    "read_document": {"path": "Welcome"},
    "find_excerpts": {"query": "second reef"},
    "find_documents": {"query": "second reef"},
    "list_documents": {"tag": "people"},
    "find_backlinks": {"path": "Budget"},
    "find_forward_links": {"path": "First voyage"},
    "resolve_wikilink": {"wikilink": "[[Budget#Table]]"},
    "write_document": {"path": "New.md", "text": "# New"},
    "rename_document": {"path": "Budget.md", "new_path": "Money.md"},
    "delete_document": {"path": "FAQ.md"},
}
BOOKS = {"name": "tides__book_winch", "arguments": {"day": "2026-07-03", "boat": "Sorrel"}}
LOOKS = {"name": "tides__high_water", "arguments": {"day": "2026-07-04"}}
# What the model of sources.md says, by a word of the message.
SAID: dict[str, list[dict[str, Any]]] = {
    "slip": [{"text": "Sorrel goes down the slip at springs, in the hour before high water."}],
    "crane": [{"text": "Nobody works the crane alone, and the sling is checked before each lift."}],
    "glue": [{"text": "Shed 2 knows about wood and glue: call 214."}],
    "high water": [{"tool_calls": [LOOKS]}, {"text": "On 4 July 2026 it is high water at 06:12 and at 18:37."}],
    "winch": [{"tool_calls": [BOOKS]}, {"text": "I have asked for the winch."}],
}


def _has_row(page: str, spec: Spec) -> bool:
    default = str(spec.default).lower() if isinstance(spec.default, bool) else f"{spec.default}"
    shown = re.sub(r"\.0`$", "`", f"`{default}`") if default else "empty"
    return f"| `{spec.key}` | {shown} |" in page


CHOSEN = ("context.top_", "context.include_score", "context.min_score", "context.learn", "tools.")
ELSEWHERE = ("tools.allow_write", "context.learn_facts")


def test_every_setting_is_explained_with_its_default_on_the_page_of_its_subject() -> None:
    for spec in settings.specs():
        key = spec.key
        for page, is_there in (
            (COMPACTION, key.startswith("context.") and "budgets" not in key),
            (MODELS, key.startswith("spend.")),
            (SEARCH, key.startswith(("search.", "context.recall"))),
            (VAULT, key.startswith(("references.", "vault")) or key == "tools.allow_write"),
            (SOURCES, key.startswith(CHOSEN) and key not in ELSEWHERE),
        ):
            assert not is_there or _has_row(page, spec), key


def test_every_key_of_an_agent_is_explained() -> None:
    (agent, *_) = _blocks(SOURCES, "toml")
    for key in (*TABLES, *(spec.key.partition(".")[0] for spec in AGENT_SPECS)):
        assert re.search(rf"^(# |\[)?{key}\b", agent, re.MULTILINE), key
    for key in ServerEntry.__struct_fields__:
        assert re.search(rf"^\| .*`{key}`.*\|", SOURCES, re.MULTILINE), key
    for word in (*INCLUDES, *APPROVALS):
        assert f"`{word}`" in SOURCES, word


def test_the_agent_that_the_sources_page_shows_has_nothing_wrong() -> None:
    for text in _blocks(SOURCES, "toml"):
        read = read_agent_file("agent.toml", text.encode(), is_yours=True)
        assert not read.notes
        assert read.servers
    (rule,) = _blocks(SOURCES, "md")
    assert not read_source_file(Rule, "Lifting.md", rule.encode()).notes
    assert all(re.search(rf"^{key}: ", rule, re.MULTILINE) and f"`{key}" in SOURCES for key in FRONT_MATTER_KEYS)


def test_the_agent_of_the_examples_has_nothing_wrong_and_something_of_each_mode() -> None:
    agent = Agents(ROOT / "examples", None).read("yard")
    assert not agent.notes
    assert {each.include for each in agent.enabled_texts} == set(INCLUDES)


def test_every_field_of_a_pick_is_explained() -> None:
    table = SOURCES.partition("| field of a pick |")[2].partition("\n\n")[0]
    told = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    assert told == set(Pick.__struct_fields__)


def test_every_word_about_approval_and_use_is_explained() -> None:
    assert {"approval", "whole", "media"} <= set(ToolResult.__struct_fields__)
    for word in filter(None, (*get_args(Verdict), *SIGNS)):
        assert f"`{word}`" in SOURCES, word


def test_every_command_about_sources_is_explained() -> None:
    for group in ("agent", "sources", "request"):
        commands = recto.get_command(click.Context(recto), group)
        assert isinstance(commands, click.Group)
        for name in commands.commands:
            assert f"`recto {group} {name}" in SOURCES, name


def test_every_slash_command_field_and_argument_is_explained() -> None:
    for name in COMMANDS.keys() - {"help"}:
        assert re.search(rf"`/{name}[ `]", PAGES + README + MODELS), name
    for name in Compaction.__struct_fields__:
        assert f"`{name}`" in COMPACTION, name
    for name in RECALL_TOOL.schema["properties"]:
        assert f"| `{name}` |" in SEARCH, name


def test_every_command_that_is_named_exists() -> None:
    for words in sorted(set(COMMAND.findall("\n".join(EVERY_PAGE)))):
        command: click.Command = recto
        for word in words.split():
            if not isinstance(command, click.Group):
                (argument,) = [each for each in command.params if isinstance(each, click.Argument)]
                assert isinstance(argument.type, click.Choice)
                assert word in argument.type.choices, words
                break
            found = command.get_command(click.Context(command), word)
            assert found is not None, words
            command = found


def test_every_slash_command_that_is_named_exists() -> None:
    for name in set(re.findall(r"`/([a-z]+)(?=[ `])", "\n".join(EVERY_PAGE))) - PATHS_OF_SERVERS:
        assert name in COMMANDS


@pytest.fixture
def at_work(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where models.md begins: its models.toml, a server of one's own that nobody asks, and files to send along."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models.toml").write_text(_blocks(MODELS, "toml")[0])
    monkeypatch.setenv("RECTO_WORK_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RECTO_MODEL", script({"text": "It is Sorrel."}))
    monkeypatch.setitem(sys.modules, "keyring", None)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))


@pytest.mark.usefixtures("at_work")
def test_what_the_models_page_shows_is_what_its_commands_print(run: Run) -> None:
    in_this_process('recto ask "Hello"')
    for command, parts in shown(MODELS):
        if command.startswith("recto keys set"):
            done = CliRunner().invoke(recto, shlex.split(command.partition(" < ")[0])[1:], input="sk-test-0123456789")
            assert done.exit_code == 0, command
        elif not command.startswith("export ") and "-m work:" not in command:  # there is no such server
            _is_printed(run, command, parts)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_embedder: None) -> str:
    """The conversation that search.md shows, told to a home with the real embedder."""
    name = write_script(tmp_path / "script.json", REPLY)
    monkeypatch.setenv("RECTO_MODEL", name)
    tell(tmp_path / "home", name)
    return name


@pytest.fixture(params=[in_this_process, pytest.param(in_a_process, marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest) -> Run:
    """What a command prints, notes included; what is no command of ours may say nothing."""

    def printed(command: str) -> str:
        if not command.startswith("recto "):
            return subprocess.run(shlex.split(command), capture_output=True, text=True, check=True).stdout
        told: str = request.param(command)
        assert told.strip(), command
        return told

    return printed


def _blocks(page: str, wanted: str) -> list[str]:
    return [text for language, text in _BLOCK.findall(page) if language == wanted]


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page in their order, each with what it is said to print, in parts where some is left out."""
    for language, text in _BLOCK.findall(page):
        if language == "sh":
            yield from ((line, []) for line in text.splitlines())
        elif text.startswith("$ recto "):
            for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = one.partition("\n")
                yield command, re.split(r"^…\n", printed, flags=re.MULTILINE)


def test_every_command_of_the_search_page_works_in_its_order(model: str, run: Run) -> None:
    commands = [command for command, printed in shown(SEARCH) if not printed]
    assert len(commands) >= 5
    for command in commands:
        run(command)


def test_what_the_search_page_shows_as_recalled_is_what_is_sent(model: str, tmp_path: Path) -> None:
    shown = next(re.finditer(r"```\n(\[Recalled.*?)```", SEARCH, re.DOTALL))[1]
    with open_desk(home=tmp_path / "home", model=model) as desk:
        talk = desk.latest()
        assert talk is not None
        sent = _TIME.sub("", last_text(desk, talk.ask(ASKED).request_id))
    assert ASKED in SEARCH
    for part in _TIME.sub("", shown).split("…\n"):
        assert part in sent


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A copy of the example vault, where the pages say that it lies."""
    return shutil.copytree(ROOT / "examples" / "vault", tmp_path / "examples" / "vault")


@pytest.fixture
def answering(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_embedder: None) -> None:
    """A model that reads a section before it answers, and the real embedder."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"tool_calls": [READS]}, ANSWERS]))
    monkeypatch.setenv("RECTO_MODEL", f"scripted:{script}")


def _is_printed(run: Run, command: str, parts: list[str]) -> None:
    printed, at = _plain(run(command)), 0
    for part in map(_plain, parts):
        at = printed.find(part, at)
        assert at >= 0, f"{command}\n{part}\nis not in\n{printed}"


def _is_ranked(run: Run, command: str, parts: list[str]) -> None:
    """A search: every row it is said to find is found, before those that score clearly less."""
    rows = [line for part in parts for line in part.splitlines() if _SCORE.search(line)]
    assert len([line for line in run(command).splitlines() if re.match(rf"\S.*{_SCORE.pattern}", line)]) == len(rows)
    printed = _plain(run(re.sub(r"(--documents|--excerpts) \d+", r"\1 10", command))).splitlines()
    found = [(printed.index(_plain(row)), float(_SCORE.findall(row)[0])) for row in rows]
    for (place, score), (later, less) in combinations(found, 2):
        assert place < later or score < less + APART, f"{command}\n{printed}"


@pytest.mark.slow
@pytest.mark.usefixtures("answering")
def test_what_the_vault_page_shows_is_what_its_commands_print_in_their_order(run: Run) -> None:
    searches = 0
    for command, parts in shown(VAULT):
        is_search = command.startswith("recto vault search")
        (_is_ranked if is_search else _is_printed)(run, command, parts)
        searches += is_search
    assert searches


@pytest.fixture
def working(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that plans, reads a note and reports."""
    script, file = tmp_path / "script.json", "boat/Electrics.md"
    texts = ("find what the notes say about fuses", "answer with the note")

    def plan(*statuses: str, **more: str) -> dict[str, Any]:
        steps = [{"text": text, "status": status} for text, status in zip(texts, statuses, strict=True)]
        return {"tool_calls": [{"name": "update_plan", "arguments": {"steps": steps} | more}]}

    reads = {"tool_calls": [{"name": "read_document", "arguments": {"path": file}}]}
    done = plan("done", "done", outcome="done", because="the note lists every fuse")
    script.write_text(json.dumps([plan("active", "pending"), reads, done, {"text": "Fuse 5, 10 A."}]))
    monkeypatch.setenv("RECTO_MODEL", f"scripted:{script}")


@pytest.mark.usefixtures("working")
def test_what_the_page_about_agent_mode_shows_is_what_its_commands_print_in_their_order() -> None:
    commands = list(shown(AGENT_MODE))
    assert len(commands) == 3
    for command, parts in commands:
        line, may_fail, _ = command.partition(" || true")
        done = CliRunner().invoke(recto, shlex.split(line)[1:])
        assert done.exit_code == (1 if may_fail else 0), done.output
        told = done.output
        _is_printed(lambda _: told, command, [part.rstrip(" \n") for part in parts])  # noqa: B023  called at once


@pytest.mark.usefixtures("working")
def test_the_python_of_the_page_about_agent_mode_runs() -> None:
    (code,) = _blocks(AGENT_MODE, "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "3 2 of 2 steps done\n" in done.stdout
    assert "done 3\n" in done.stdout


def test_the_page_about_agent_mode_explains_every_outcome_status_and_argument() -> None:
    properties = PLAN_TOOL.schema["properties"]
    for word in (*get_args(RunStatus)[1:], *STATUSES, *properties, *properties["steps"]["items"]["properties"]):
        assert f"`{word}`" in AGENT_MODE, word


@pytest.mark.slow
@pytest.mark.usefixtures("answering")
def test_the_python_of_the_vault_page_runs() -> None:
    (code,) = [text for language, text in _BLOCK.findall(VAULT) if language == "python"]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "[[Rigging#Reefing]] boat/Rigging.md direct" in done.stdout


def test_every_tool_of_the_vault_is_explained_with_what_it_takes_and_gives(notes: Path, tmp_path: Path) -> None:
    vault = Vault(notes)
    library = VaultSearch(vault, tmp_path / "search.db", lambda: None)
    library.fill()  # where the index is not whole yet, a note says so
    rows = {row.split(" | ")[0].strip("|` "): row.split(" | ") for row in re.findall(r"^\| `.*$", VAULT, re.MULTILINE)}
    for each in (*reading_tools(vault, library), *writing_tools(vault)):
        _, takes, gives = rows[each.tool.name]
        assert set(each.tool.schema["properties"]) == set(re.findall(r"`(\w+)`", takes)), each.tool.name
        told = set(re.findall(r"`(\w+)`", gives))
        assert set(_fields(json.loads(each.run(CALLS[each.tool.name])))) <= told, each.tool.name
    library.close()
    vault.close()


def _fields(given: Any) -> Iterator[str]:
    if isinstance(given, dict):
        yield from given
    for each in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from _fields(each)


@pytest.fixture
def yard(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_embedder: None) -> Path:
    """Where sources.md begins: the examples, the server that it shows, the real embedder. Gives the model's script."""
    shutil.copytree(ROOT / "examples" / "agents", tmp_path / "examples" / "agents")
    (tmp_path / "tides.py").write_text(_blocks(SOURCES, "python")[0])
    script = tmp_path / "script.json"
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RECTO_MODEL", f"scripted:{script}")
    return script


def _add_server(project: Path) -> None:
    """As the page says: in .mcp.json, and what the agent makes of it."""
    (project / ".mcp.json").write_text(_blocks(SOURCES, "json")[0])
    with (project / ".recto" / "agents" / "yard" / "agent.toml").open("a") as file:
        file.write(_blocks(SOURCES, "toml")[1])


def _plain(text: str) -> str:
    """Without what is another one every time (ids of calls count as tokens too), nor blanks at the ends of lines."""
    counted = re.sub(r"about [\d,]+|[\d,]+ bytes", "N", text)
    named = _ID.sub("ID", _MOMENT.sub("MOMENT", _SCORE.sub("SCORE", counted)))
    return re.sub(r" +$", "", named, flags=re.MULTILINE)


@pytest.mark.slow
def test_what_the_sources_page_shows_is_what_its_commands_print_in_their_order(
    yard: Path, tmp_path: Path, run: Run
) -> None:
    for command, parts in shown(SOURCES):
        if "sources trust" in command:
            _add_server(tmp_path)
        if " ask " in command:
            yard.write_text(json.dumps(next(said for word, said in SAID.items() if word in command)))
        _is_printed(run, command, parts)


@pytest.mark.slow
def test_the_python_of_the_sources_page_runs(yard: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "examples" / "agents", tmp_path / ".recto" / "agents")
    _add_server(tmp_path)
    steps = [*SAID["high water"], *SAID["winch"]]
    yard.write_text(json.dumps(steps))
    code = _blocks(SOURCES, "python")[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "tool:tides/book_winch agent None ask" in done.stdout
    assert 'tool:tides/book_winch {"day":' in done.stdout
    assert "'sign': 'called'" in done.stdout


@pytest.fixture
def talked(script: Script, desk: Open, tmp_path: Path) -> None:
    """A conversation of the yard's agent, with something chosen and something that is not."""
    shutil.copytree(ROOT / "examples" / "agents", tmp_path / ".recto" / "agents")
    _add_server(tmp_path)
    opened = desk(script(*SAID["slip"]))
    talk = opened.conversation(agent="yard")
    for text in ("When can Sorrel go down the slip?", "Which telephone number does the office have?"):
        talk.ask(text)
    opened.close()


@pytest.mark.usefixtures("talked")
def test_the_fields_that_the_sources_page_names_are_those_of_the_commands(run: Run) -> None:
    rows = re.findall(r"^\| `(recto [a-z ]+)` \| (.*) \| (.*?) ?\|$", SOURCES, re.MULTILINE)
    assert len(rows) == 6
    for command, always, sometimes in rows:
        lines = run(f"{command} --json" if "export" not in command else command).splitlines()
        found = [set(json.loads(line)) for line in lines if line.startswith("{")]
        must, may = (set(re.findall(r"`(\w+)`", cell)) for cell in (always, sometimes))
        assert all(must <= each <= must | may for each in found), command
        assert found or "stats" in command, command
