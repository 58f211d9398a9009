"""Texts from elsewhere (projects, notes, models, servers, arguments) never steer the terminal, whatever prints them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result
from tests.cli.conftest import Run
from tests.cli.terminal import Terminal
from tests.conftest import Script, Serve, mostly_slow
from tests.providers.conftest import Loopback

import recto.cli
from recto.api.blocking import open_desk
from recto.cli.main import COMMANDS
from recto.cli.main import recto as root

pytestmark = pytest.mark.untraced

# The clipboard, the title, a cleared screen, all three again as C1 characters, and a line turned around.
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\x9d0;owned\x9c\x9b2J\x90q\x9c\u202eevil\u2066\x7f"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAME = f"Boat {EVIL}"


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


@pytest.fixture(autouse=True)
def quick_model(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODEL", script({"text": "Yes."}))


def is_harmless(done: Result, *, exact: str = "") -> None:
    """`exact` is the content that was asked for: it stays as it is where a program reads it."""
    assert not STEERS.search(done.stdout.replace(exact, "")), done.stdout
    assert not STEERS.search(done.stderr), done.stderr


@pytest.fixture
def world(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project, a vault, an agent, a server and a conversation that all mean harm; gives the model of the user."""
    vault = tmp_path / f"notes {EVIL}"
    vault.mkdir()
    head = json.dumps({"aliases": [EVIL], "tags": ["sea"], "title": EVIL})
    text = f"---\n{head}\n---\n# Mast {EVIL}\n\nThe boat {EVIL} mast. [[Nowhere {EVIL}]] [[Other|{EVIL}]] #tag{EVIL}\n"
    (vault / f"{NAME}.md").write_text(text)
    (vault / "Other.md").write_text(f"# Other {EVIL}\n\n[[{NAME}]] boat\n")
    agent = tmp_path / "home/agents/default"
    for part in ("rules", "references"):
        (agent / part).mkdir(parents=True)
        (agent / part / "plain.md").write_text(f"---\ndescription: {json.dumps(EVIL)}\n---\nboat {EVIL}")
        (agent / part / f"{NAME}.md").write_text("---\nboat")
    quoted = json.dumps(EVIL)
    far = f"[mcpServers.far]\ncommand = {quoted}\nargs = [{quoted}]\n[mcpServers.far.tools.{quoted}]\n"
    servers = f"[mcpServers.{quoted}]\n{far}"
    (agent / "agent.toml").write_text(f"description = {quoted}\nodd = {quoted}\n[include]\n{quoted} = 1\n{servers}")
    (tmp_path / ".recto/agents/theirs").mkdir(parents=True)
    (tmp_path / ".recto/agents" / f"x{EVIL}").mkdir()
    (tmp_path / ".recto/agents/theirs/agent.toml").write_text(f"model = {quoted}\nsystem_prompt_file = {quoted}\n")
    (tmp_path / ".recto/config.toml").write_text(f"model = {quoted}\nvault = {quoted}\nsystem_prompt = {quoted}\n")
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {EVIL: {}, "near": {"command": EVIL, "env": {EVIL: EVIL}}}})
    )
    call = {"tool_calls": [{"name": f"tool{EVIL}", "arguments": {EVIL: EVIL}}]}
    model = script(call, {"text": f"Answer {EVIL}"}, {"text": f"Summary {EVIL}", "when": "summary"}, limit=20_000)
    monkeypatch.setenv("RECTO_MODEL", model)
    monkeypatch.setenv("RECTO_VAULT", str(vault))
    monkeypatch.setenv("RECTO_CONTEXT_RECENT_MESSAGES_TO_KEEP", "1")
    with open_desk() as desk:
        talk = desk.conversation()
        talk.ask(f"boat {EVIL} [[{NAME}]] [[Nowhere {EVIL}]]")
        talk.ask(f"boat again {EVIL}")
        desk.rename(talk.id or "", f"Title {EVIL}")
    return model


# Every command, with arguments that make it print names, titles, paths, texts; those of one line run in this order.
SPOKEN: dict[tuple[str, ...], list[list[str]]] = {
    ("ask",): [["more boat"], ["more", "--json"], ["more", "--show-context"]],
    ("chat",): [[]],
    ("web",): [["--host", f"nowhere{EVIL}"], ["--host", EVIL], ["--port", EVIL]],
    ("conversations", "list"): [[], ["--json"]],
    ("conversations", "show"): [[], ["--json"]],
    ("conversations", "search"): [["boat"], ["boat", "--json"], [EVIL]],
    ("conversations", "replay"): [["--at-once"], [EVIL]],
    ("conversations", "result"): [["3"]],
    ("conversations", "rename"): [["1", f"Other {EVIL}"]],
    ("conversations", "pin"): [["1"]],
    ("conversations", "unpin"): [["1"]],
    ("conversations", "priority"): [["1", "7"]],
    ("conversations", "fork"): [["1"]],
    ("conversations", "undo"): [[]],
    ("conversations", "hide"): [["Title"], ["Title", "--json"], [EVIL]],
    ("conversations", "unhide"): [["1"]],
    ("conversations", "delete"): [["1"], ["Title"]],
    ("conversations", "restore"): [["1"], [EVIL]],
    ("conversations", "empty-trash"): [[], ["--yes"]],
    ("context", "export"): [["-o", "out.jsonl"], ["--format", "markdown"], ["--format", "html"], [EVIL]],
    ("context", "import"): [["out.jsonl"], [EVIL]],
    ("context", "show"): [[], ["--json"]],
    ("context", "stats"): [[], ["--json"], ["--by", "turn"]],
    ("context", "whatif"): [
        [],
        ["--all"],
        ["--json"],
        [EVIL],
        ["--model", EVIL],
        ["--set", EVIL],
        ["--strategy", EVIL],
    ],
    ("context", "cost"): [[], ["--all", "--by", "conversation"], ["--all", "--by", "model"], ["--json"]],
    ("context", "set"): [["summary_style", EVIL], ["threshold", EVIL], [EVIL, "1"]],
    ("context", "unset"): [["summary_style"], [EVIL]],
    ("context", "compact"): [["--keep", EVIL]],
    ("context", "summary"): [[], ["--json"]],
    ("context", "uncompact"): [[]],
    ("context", "clear"): [[]],
    ("request", "show"): [[], ["--json"]],
    ("request", "rebuild"): [[]],
    ("request", "verify"): [["--all"]],
    ("sources", "list"): [[], ["--json"]],
    ("sources", "add"): [["rule:plain"]],
    ("sources", "remove"): [["rule:plain"]],
    ("sources", "mode"): [["rule:plain", "manual"]],
    ("sources", "ask"): [[EVIL]],
    ("sources", "trust"): [["near"]],
    ("sources", "distrust"): [["near"]],
    ("sources", "stats"): [[]],
    ("sources", "export"): [[]],
    ("agent", "list"): [[], ["--json"]],
    ("agent", "show"): [[], ["theirs"], ["--json"]],
    ("agent", "new"): [["clerk", "--description", EVIL]],
    ("agent", "config"): [["default"], ["default", "description"], ["theirs"]],
    ("agent", "run"): [[EVIL], [f"do {EVIL}", "--json"], ["--continue"], ["--continue", "-c", EVIL]],
    ("vault", "index"): [[]],
    ("vault", "status"): [[], ["--json"]],
    ("vault", "search"): [["boat"], ["boat", "--json"]],
    ("vault", "links"): [[NAME], [NAME, "--json"], [EVIL]],
    ("vault", "backlinks"): [[NAME]],
    ("vault", "broken"): [[]],
    ("vault", "graph"): [["--format", "json"], ["--from", NAME]],
    ("vault", "stats"): [[], ["--by", "conversation"]],
    ("vault", "suggest"): [[]],
    ("memory", "add"): [[EVIL], ["boat"], ["x", "--replaces", "99"]],
    ("memory", "list"): [[], ["--json"]],
    ("memory", "search"): [["boat"], [EVIL], ["boat", "--json"]],
    ("memory", "show"): [["1"], ["1", "--json"]],
    ("memory", "edit"): [["1", EVIL], ["1", "--kind", "person"]],
    ("memory", "forget"): [["1"], ["2", "--yes"]],
    ("memory", "import"): [[EVIL], [f"no {EVIL}.md"]],
    ("memory", "export"): [[], ["--format", "json"], ["-o", f"no/{EVIL}/x.md"]],
    ("memory", "relevance"): [["--message", EVIL]],
    ("context", "memory"): [[], ["--json"]],
    ("store", "check"): [[], ["--json"]],
    ("store", "backup"): [[], [f"copy {EVIL}.db"], [f"no/{EVIL}/x.db"]],
    ("store", "restore"): [[f"no {EVIL}.db"]],
    ("store", "accept"): [[]],
    ("store", "copy"): [["--to", f"copy {EVIL}.db"], ["--to", f"{EVIL}://x"], ["--from", EVIL, "--to", "x.db"]],
    ("store", "prune"): [
        ["--older-than", "0d", "--dry-run"],
        ["--older-than", "0d", "--dry-run", "--json"],
        ["--older-than", EVIL],
    ],
    ("config", "show"): [[], ["--json"], ["-c", "1"]],
    ("config", "get"): [["vault"]],
    ("config", "set"): [["system_prompt", EVIL]],
    ("config", "unset"): [["system_prompt"], [EVIL]],
    ("config", "trust"): [[]],
    ("config", "distrust"): [[]],
    ("models", "list"): [["smollm"]],
    ("models", "show"): [[], [EVIL]],
    ("models", "pull"): [],
    ("models", "use"): [[EVIL]],
    ("serve", "keys", "add"): [[EVIL], ["x", "--model", EVIL, "--json"], ["x"]],
    ("serve", "keys", "list"): [[], ["--json"]],
    ("serve", "keys", "remove"): [[EVIL], [f"no {EVIL}"], ["x", "--json"]],
    ("mcp",): [["--vault", EVIL], ["--port", EVIL]],
    ("keys", "set"): [["openai"], [EVIL]],
    ("keys", "list"): [[], ["--json"]],
    ("keys", "remove"): [["openai"], [EVIL]],
}
TYPED = [f"boat {EVIL}", f"/{EVIL}", "/rules", "/tools", "/references all", "/context", "/search boat", "/fork"]
TYPED += [f"/model nobody{EVIL}", f"/document {EVIL}", f"/attach {EVIL}", f"/rules add {EVIL}", "/pin 1", "/unpin"]
TYPED += [f"/memory add {EVIL}", "/memory", f"/memory {EVIL}", f"/memory forget {EVIL}", "/memory forget 1"]
TYPED += ["/cost", f"/set summary_style {EVIL}", "/set", f"/set {EVIL} 1", f"/unset {EVIL}", "/unset summary_style"]
TYPED += ["/request", "/summary", f"/tools ask {EVIL}", f"/strategy {EVIL}", "/undo"]
TYPED += ["/history", "/conversations boat", "/branches", f"/switch {EVIL}", "/regenerate", f"/edit 1 boat {EVIL}"]
TYPED += [f"/help {EVIL}", "/export", f"/export {EVIL}"]
TYPED += [f"/goal do {EVIL}", "/goal", "/goal stop"]
TYPED += [f"/rename {EVIL}", "/hide", "/delete", "/quit"]


def test_every_command_is_tried() -> None:
    assert set(SPOKEN) == set(leaves(root))


@pytest.mark.parametrize("group", COMMANDS)
def test_no_command_passes_on_what_steers_a_terminal(run: Run, world: str, group: str) -> None:
    for path, given in SPOKEN.items():
        for arguments in given if path[0] == group else ():
            done = run(*path, *arguments, input="\n".join(TYPED) if path == ("chat",) else None)
            exact = f"Answer {EVIL}" if path in (("ask",), ("chat",), ("agent", "run")) else ""
            if path in (("request", "rebuild"), ("conversations", "result")):
                exact = done.stdout
            is_harmless(done, exact=exact)
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize("group", COMMANDS)
def test_no_command_echoes_an_argument_that_steers_a_terminal(run: Run, group: str) -> None:
    for path in leaves(root):
        if path[0] == group and path != ("models", "pull"):
            for arguments in ([EVIL], [EVIL, EVIL], [EVIL, EVIL, EVIL], [f"--{EVIL}"], ["--json", EVIL]):
                done = run(*path, *arguments, input="")
                is_harmless(done)
                assert "Traceback" not in done.stderr
                assert done.exit_code in (0, 1, 2)
    log = ["--log", f"/no/{EVIL}", "config", "show"]
    for arguments in ([EVIL], [f"--{EVIL}"], [group, EVIL], ["--json", EVIL], log):
        done = run(*arguments)
        is_harmless(done)
        assert "Traceback" not in done.stderr
        assert done.exit_code in (0, 1, 2), "some of them are a question"


@pytest.mark.parametrize(
    "text",
    [
        f'"{EVIL}" = 1\n',
        f'model = "x\n{EVIL}',
        f'vault = "{EVIL}',
        json.dumps({"a": EVIL}),
        f"[reply]\ntries = {json.dumps(EVIL)}\n",
        f"[{json.dumps(EVIL)}]\nx = 1\n",
    ],
)
def test_files_with_mistakes_are_told_without_what_steers_a_terminal(
    run: Run, tmp_path: Path, home: Path, text: str
) -> None:
    home.mkdir()
    (tmp_path / ".recto").mkdir()
    # each file with the command that shows it, and with the one that reads them all
    for file, shows in (
        (home / "config.toml", "config show"),
        (tmp_path / ".recto/config.toml", "config show"),
        (home / "models.toml", "models list smollm"),
        (home / ".mcp.json", "agent show"),
    ):
        file.write_text(text)
        for command in (shows, "ask hello --json"):
            done = run(*command.split())
            is_harmless(done)
            assert "Traceback" not in done.stderr
            assert done.exit_code in (0, 1)
        file.unlink()


def test_what_a_provider_says_of_an_error_is_made_visible(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = serve(Loopback.error(400, {"error": {"message": f"no {EVIL}", "type": EVIL}}))
    monkeypatch.setenv("RECTO_EVIL_BASE_URL", provider.url)
    for more, level in (([], ""), (["--json"], ""), ([], "debug")):
        monkeypatch.setenv("RECTO_LOG", level)
        done = run("ask", "-m", "evil:model", "hello", *more)
        assert done.exit_code == 1
        is_harmless(done)
        assert "evil" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    mostly_slow([("ask", "boat"), ("conversations", "show"), ("vault", "search", "boat"), ("chat",)], [("chat",)]),
)
def test_on_a_terminal_our_own_colours_stay_and_theirs_do_not_pass(
    world: str, terminal: type[Terminal], arguments: tuple[str, ...]
) -> None:
    shown = terminal(*arguments)
    if arguments == ("chat",):
        shown.wait_for("› ")
        shown.type("boat\r")
        shown.wait_for("let it run? [y]es / [N]o ")
        shown.settle()
        shown.type("\r")
        shown.wait_for("Answer")
        shown.type("/quit\r")
    shown.code()
    raw = shown.raw
    assert "\x1b[" in raw, "styles"
    assert "owned" in raw.replace("\x1b]0;owned", "") or arguments[0] == "chat"
    for evil in ("\x1b]52", "\x1b]0;", "\x1b[2J", "\x9b", "\x9d", "\x90", "\u202e", "\u2066", "\x07"):
        assert evil not in raw


def test_one_module_writes_to_the_streams() -> None:
    """So that no text goes around it."""
    writes = re.compile(r"click\.s?echo\(|(?<![.\w])print\(|sys\.std(out|err)\.(buffer\.)?write\(|(?<![.\w])Console\(")
    found = {
        path.name for path in Path(recto.cli.__file__).parent.rglob("*.py") if writes.search(path.read_text("utf-8"))
    }
    assert found == {"show.py"}
