"""Pages that `make docs` writes are what the code says, every setting has all that its entry needs, and every example
of a command is run.
"""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from docs.generate.command_pages import all_commands, command_pages
from docs.generate.pages import DOCS, made_pages
from docs.generate.setting_advice import ADVICE
from docs.generate.settings_page import project_may, settings_page
from tests.cli.harbour import SERVER, write_source
from tests.journeys.commands import in_this_process

from recto.api.blocking import open_desk
from recto.api.desk import AsyncDesk
from recto.cli.main import recto
from recto.settings import settings

ROOT = DOCS.parent
SPECS = {spec.key: spec for spec in settings.specs()}
SAID = {"text": "The mast step is of oak."}
READS = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome"}}]}
DONE = {"steps": [{"text": "list them", "status": "done"}]}
PLANS = {"tool_calls": [{"name": "update_plan", "arguments": DONE}]}
QUIET = {"search.embedder": "none", "store.backup": False}
# What must have happened before an example makes sense, besides what the world of `world` holds.
BEFORE = {
    "recto config unset": ["recto config set context.threshold 0.7"],
    "recto conversations restore": ["recto conversations delete 3"],
    "recto conversations unhide": ["recto conversations hide 3"],
    "recto conversations unpin": ["recto conversations pin 57"],
    "recto context uncompact": ["recto context compact"],
    "recto context summary": ["recto context compact"],
    "recto context unset": ["recto context set threshold 0.7"],
    "recto sources ask": ["recto sources trust github"],
    "recto sources remove": ["recto sources add ref:api"],
    "recto sources add": ["recto sources trust github", "recto sources mode tool:github manual"],
    "recto sources mode": ["recto sources trust github"],
    "recto sources distrust": ["recto sources trust github"],
    "recto store restore": ["recto store backup"],
    "recto keys remove": ["recto keys set openai"],
    "recto serve": ["recto serve keys add laptop"],
    "recto serve keys list": ["recto serve keys add laptop"],
    "recto serve keys remove": ["recto serve keys add laptop"],
}


def test_the_pages_are_what_the_code_says() -> None:
    for path, made in made_pages().items():
        found = (DOCS / path).read_text("utf-8") if (DOCS / path).exists() else ""
        assert found == made, f"docs/{path} is out of date: `make docs` writes it again"


def test_no_page_of_a_command_is_left_over() -> None:
    assert {f"commands/{page.name}" for page in (DOCS / "commands").iterdir()} <= command_pages().keys()


def test_no_page_names_this_machine() -> None:
    pages = [ROOT / "README.md", *DOCS.glob("**/*.md"), *DOCS.glob("**/*.svg")]
    named = {str(page): re.findall(r"/(?:work|root|home|tmp|dev/shm)/\S*", page.read_text("utf-8")) for page in pages}
    assert {page: found for page, found in named.items() if found} == {}


def test_every_setting_has_advice_and_no_advice_is_left_over() -> None:
    assert ADVICE.keys() == SPECS.keys()


def test_a_setting_has_description_type_default_and_an_example_that_is_allowed() -> None:
    page = settings_page()
    for spec in SPECS.values():
        assert spec.help, spec
        assert spec.help[-1] != ".", spec
        assert type(spec.default) in (bool, int, float, str)
        assert spec.read(spec.default, "default") == spec.default
        when, example = ADVICE[spec.key]
        assert when.endswith(".")
        assert spec.read(example, "example") is not None
        entry = page.partition(f"### `{spec.key}`\n")[2].partition("\n#")[0]
        for part in (f"takes {spec.allowed}", f"in a project: {project_may(spec.key)}", when, example):
            assert part in entry, spec


def test_every_example_of_a_setting_can_be_set() -> None:
    for command in re.findall(r"^- example: `(.*)`$", settings_page(), re.MULTILINE):
        assert in_this_process(command), command


def test_a_setting_with_a_range_has_both_ends() -> None:
    assert [key for key, spec in SPECS.items() if (spec.low is None) != (spec.high is None)] == []
    numbers = {key for key, spec in SPECS.items() if type(spec.default) in (int, float)}
    assert {key for key in numbers if SPECS[key].low is None} == set()


@pytest.fixture(scope="session")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three conversations, of which the last one is long, and the script of their model."""
    folder = tmp_path_factory.mktemp("talked")
    script = folder / "script.json"
    script.write_text(json.dumps([SAID, SAID, READS, SAID]))
    notes = ROOT / "examples" / "vault"
    with open_desk(home=folder / "home", model=f"scripted:{script}", vault=notes, settings=QUIET) as desk:
        for title in ("Boats", "Masts"):
            desk.conversation().ask(title)
        for fact in ("My sister Anna lives in Berlin", "Anna moved to Hamburg"):
            desk.facts.learn(fact)
        talk = desk.conversation()
        for number in range(32):
            talk.ask(f"What is the mast step number {number} made of?")
    script.write_text(json.dumps([SAID]))
    return folder


@pytest.fixture
def world(talked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with notes, an agent and a server, and the home with the conversations."""
    shutil.copytree(talked / "home", tmp_path / "home")
    shutil.copytree(ROOT / "examples" / "vault", tmp_path / "notes")
    for name, value in (("MODEL", f"scripted:{talked / 'script.json'}"), ("VAULT", str(tmp_path / "notes"))):
        monkeypatch.setenv(f"RECTO_{name}", value)
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr(click, "launch", lambda address: 0)
    (tmp_path / "report.txt").write_text("The mast step was rotten.")
    (tmp_path / "conversations.json").write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    _write_project(tmp_path)


def _write_project(folder: Path) -> None:
    project = folder / ".recto"
    project.mkdir()
    (project / "config.toml").write_text('model = "openai:gpt-4o"\n')
    for name in ("clerk", "default"):
        write_source(project / "agents" / name, "rule", "style", "Write short.", description="How we write")
        write_source(project / "agents" / name, "reference", "api", "GET /boats", description="The API")
    (folder / "server.py").write_text(SERVER.replace('"berth"', '"create_issue"'))
    said = {"command": sys.executable, "args": [str(folder / "server.py")]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"github": said}}))


SERVES = "recto web"
"""Runs until it is ended: tests/web does that."""
EXAMPLES = [(each.words, example) for each in all_commands() for example in each.examples if each.words != SERVES]
EMBEDS_THE_NOTES = "recto vault index --vectors"


def test_every_command_has_an_example() -> None:
    assert [each.words for each in all_commands() if not each.examples] == []


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("words", "example"),
    [
        pytest.param(*each, id=each[1], marks=[pytest.mark.slow] if each[1] == EMBEDS_THE_NOTES else [])
        for each in EXAMPLES
    ],
)
def test_the_example_of_a_command_runs(
    words: str, example: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--vectors" in example:
        request.getfixturevalue("real_embedder")
    if words == "recto serve":  # it would go on for ever
        monkeypatch.setattr("recto.serve.server.serve_endpoint", lambda desk, *_: desk.close())
    if words == "recto mcp":
        monkeypatch.setattr("recto.serve.server.serve_mcp", _mcp_server_that_ends)
    if words == "recto agent run":
        (tmp_path / "plan.json").write_text(json.dumps([PLANS, SAID]))
        monkeypatch.setenv("RECTO_MODEL", f"scripted:{tmp_path / 'plan.json'}")
    for command in (*BEFORE.get(words, ()), example):
        line, _, piped = command.partition(" < ")
        said = Path(piped).read_text() if piped else "sk-test-0123456789" if "keys set" in line else "Hello\n/quit\n"
        done = CliRunner().invoke(recto, shlex.split(line)[1:], input=said)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        assert done.output.strip() or "-o" in line, command


async def _mcp_server_that_ends(desk: AsyncDesk, *_: object, **options: object) -> None:
    await desk.close()
    click.echo("served")


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("page", ["settings.md", "tokens.md", "commands/slash.md"])
def test_the_commands_of_a_page_run_in_their_order(page: str, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "notes", tmp_path / "examples" / "vault")
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
        for line in block.splitlines()
    ]
    assert lines
    for line in lines:
        printed, _, command = line.rpartition(" | ")
        said = printed.removeprefix("printf '").removesuffix("'").replace("\\n", "\n")
        done = CliRunner().invoke(recto, shlex.split(command)[1:], input=said)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        assert done.output.strip(), line
