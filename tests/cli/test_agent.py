import re
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one

from recto.agents.agents import Agents
from recto.sources.server_config import without_secrets


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that the tests run in is a project."""
    (tmp_path / ".recto").mkdir()
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


SERVER = """
[mcpServers.files]
command = "npx"
args = ["-y", "server", "--api-key", "hush1", "--token=hush2", "--header", "Authorization: Bearer hush3"]
env = { FILES_TOKEN = "hush4" }
include = "agent"
timeout_s = 5
tools.write_file = { approval = "deny", enabled = false }
[mcpServers.far]
url = "https://someone:hush5@far.example/mcp?key=hush6&b=hush7"
headers = { Authorization = "hush8" }
enabled = false
[mcpServers.recto]
include = "agent"
tools.recall.include = "always"
"""


# -- show


def test_show_names_the_file_that_a_system_prompt_is_read_from(run: Run, home: Path) -> None:
    write(home / "agents/clerk/agent.toml", 'system_prompt_file = "prompt.md"\n')
    write(home / "agents/clerk/prompt.md", "Answer letters.")
    assert "Answer letters." in run("agent", "show", "clerk").stdout


def test_show_tells_all_that_is_in_force_and_no_secret(run: Run, home: Path, project: Path) -> None:
    prompt = 'system_prompt = "Be kind."\n[context]\nthreshold = 0.7\nuse_facts = false\n'
    mine = write(home / "agents/clerk/agent.toml", f'description = "Answers letters"\nmodel = "a:b"\n{prompt}{SERVER}')
    write(project / ".recto/agents/clerk/references/api.md", "---\nenabled: false\n---\nGET")
    told = run("agent", "show", "clerk")
    row = one(run("agent", "show", "clerk", "--json"))
    assert row["from"]["context.threshold"] == str(mine)
    assert row["settings"] == {
        "model": "a:b",
        "system_prompt": "Be kind.",
        "context.threshold": 0.7,
        "context.use_facts": False,
    }
    assert f"0.7  [{mine}]" in told.stdout
    assert "hush" not in run("sources", "list", "--agent", "clerk").stdout + told.stdout


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--port", "80", "--tokens-file", "x"], ["--port", "80", "--tokens-file", "…"]),
        (["-e", "GITHUB_TOKEN=x y"], ["-e", "GITHUB_TOKEN=…"]),
        (["postgres://me:pw@db/x"], ["postgres://…@db/x"]),
        (["monkey", "key"], ["monkey", "key"]),
    ],
)
def test_what_looks_like_a_secret_is_hidden_in_arguments(args: list[str], shown: list[str]) -> None:
    assert without_secrets(args) == shown


# -- new


def test_new_makes_an_agent_that_works(run: Run, home: Path) -> None:
    assert run("agent", "new", "clerk", "-m", "a:b", "--description", 'Answers "letters"').exit_code == 0
    agent = Agents(home, None).read("clerk")
    assert (agent.model, agent.description, agent.notes) == ("a:b", 'Answers "letters"', ())
    (rule,) = agent.rules
    assert (rule.name, rule.include, rule.enabled) == ("example", "manual", True)


def test_every_line_of_the_new_file_can_be_uncommented(run: Run, home: Path) -> None:
    run("agent", "new", "clerk")
    file = home / "agents/clerk/agent.toml"
    assert tomllib.loads(file.read_text()) == {}
    text = re.sub(r'^# (?=\[|["\w:]+ = )', "", file.read_text(), flags=re.MULTILINE)
    file.write_text(text)
    agent = Agents(home, None).read("clerk")
    assert not agent.notes
    assert set(tomllib.loads(text)) == {"description", "model", "system_prompt"}


def test_new_writes_nothing_over(run: Run, home: Path, project: Path) -> None:
    write(home / "agents/clerk/agent.toml", "# mine\n")
    failure(run("agent", "new", "clerk"))
    assert (home / "agents/clerk/agent.toml").read_text() == "# mine\n"
    run("agent", "new", "clerk", "--project")
    assert (project / ".recto/agents/clerk/rules/example.md").is_file()


# -- config


def test_a_prompt_of_the_agent_hides_that_of_the_settings(run: Run, home: Path) -> None:
    write(home / "config.toml", 'system_prompt = "general"\nsystem_prompt_file = "x.md"\n')
    write(home / "agents/clerk/agent.toml", 'system_prompt = "own"\n')
    assert run("agent", "config", "clerk", "system_prompt").stdout == "own\n"
    assert run("agent", "config", "clerk", "system_prompt_file").stdout == "\n"
    assert run("agent", "config", "default", "system_prompt").stdout == "general\n"


def test_what_is_set_can_be_got_and_taken_out(run: Run, home: Path) -> None:
    file = write(home / "agents/clerk/agent.toml", '# mine\nmodel = "a:b" # small\n')
    for key, value, read in (
        ("context.threshold", "0.7", 0.7),
        ("context.use_agent_memory", "off", False),
        ("model", "c:d", "c:d"),
    ):
        assert run("agent", "config", "clerk", key, value).exit_code == 0
        assert one(run("agent", "config", "clerk", key, "--json"))["value"] == read
    assert file.read_text().startswith('# mine\nmodel = "c:d" # small\n')
    assert one(run("agent", "config", "clerk", "model", "--unset", "--json"))["from"] == "default"
    assert "does not set model" in failure(run("agent", "config", "clerk", "model", "--unset"))


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["context.low_water", "0.9"], 1),
        (["modle"], 1),
        (["include", "x"], 1),
        (["mcpServers.x.include", "agent"], 1),
        (["--unset"], 2),
        (["model", "x", "--unset"], 2),
    ],
)
def test_a_wrong_key_or_value_writes_nothing(run: Run, home: Path, args: list[str], code: int) -> None:
    file = write(home / "agents/clerk/agent.toml", "# mine\n")
    failure(run("agent", "config", "clerk", *args), code)
    assert file.read_text() == "# mine\n"


def test_settings_that_do_not_suit_each_other_are_told_everywhere(run: Run, home: Path) -> None:
    write(home / "agents/clerk/agent.toml", "[context]\nmin_score = 0.8\ninclude_score = 0.5\ntop_n = 3\n")
    said = "it takes a number from 0 to 0.5; the agent's context.min_score is ignored"
    for command in (["list"], ["show", "clerk"], ["config", "clerk"], ["config", "clerk", "context.min_score"]):
        told = run("agent", *command)
        assert (told.exit_code, said in told.stderr) == (0, True), command
    other = run("agent", "config", "clerk", "context.top_n")
    assert (other.stdout, other.stderr) == ("3\n", "")
    assert said in run("agent", "config", "clerk", "context.top_n", "4").stderr


def test_agents_can_be_seen_where_the_settings_cannot_be_read(run: Run, home: Path) -> None:
    write(home / "config.toml", "model = \n")
    write(home / "agents/clerk/agent.toml", 'model = "a:b"\n')
    assert run("agent", "list").exit_code == 0
    assert run("agent", "show", "clerk").exit_code == 0
    assert "config.toml is not valid TOML" in failure(run("agent", "config", "clerk", "context.top_n"))


def test_a_name_that_no_folder_can_have_is_one_sentence(run: Run) -> None:
    for command in (["agent", "show"], ["agent", "new"], ["agent", "config"], ["sources", "list", "--agent"]):
        assert "at most 64 characters" in failure(run(*command, "x" * 300))
    assert "at most 64 characters" in failure(run("ask", "--agent", "x" * 300, "-m", "scripted:x", "hello"))


def test_a_file_of_the_prompt_is_found_from_here(run: Run, home: Path, tmp_path: Path) -> None:
    write(home / "agents/clerk/agent.toml", "")
    write(tmp_path / "here.md", "From here.")
    run("agent", "config", "clerk", "system_prompt_file", "here.md")
    assert Agents(home, None).read("clerk").system_prompt == "From here."
    write(home / "agents/clerk/own.md", "Its own.")
    run("agent", "config", "clerk", "system_prompt_file", "own.md")
    assert 'system_prompt_file = "own.md"' in (home / "agents/clerk/agent.toml").read_text()
