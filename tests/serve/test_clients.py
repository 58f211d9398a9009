"""Clients that people use, as they are published, in an environment of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Start

pytestmark = [pytest.mark.slow, pytest.mark.untraced]
HERE = Path(__file__).parent / "clients"
ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".bench"
CALL = {"tool_calls": [{"name": "read", "arguments": {}, "id": "call_1"}]}
SAID = ["She is 7 metres long.", "She is 2 metres wide.", "It is dry."]


def installed(wanted: Path, place: Path) -> Path:
    """The programs of an environment, made once; again when the list of what it has changed."""
    stamp = place / "ready.txt"
    if not stamp.is_file() or stamp.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "-r", str(wanted)]
        subprocess.run([*install, "--disable-pip-version-check"], check=True)
        stamp.write_text(wanted.read_text())
    return place / "bin"


@pytest.fixture(scope="session")
def clients() -> Path:
    return installed(HERE / "requirements.txt", ENVIRONMENTS / "clients")


def ran(clients: Path, *command: str, **environment: str) -> str:
    named = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(clients / command[0]), *command[1:]], env=named | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CLIENTS = ["openai_sdk", "openai_responses", "anthropic_sdk", "langchain_chat", "pydantic_ai_agent"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_chats_streams_and_calls_tools(clients: Path, endpoint: Start, script: Script, client: str) -> None:
    server = endpoint(script({"text": SAID[0]}, {"text": SAID[1]}, CALL, {"text": SAID[2]}))
    told: dict[str, Any] = json.loads(ran(clients, "python", str(HERE / f"{client}.py"), server.url, server.model))
    assert told["said"] == SAID
    assert told.get("refused", "n") in ("n", "messages")
    homes = server.run(server.desk.conversations())
    assert len(homes) == 2
    assert server.said(homes[1].id) == ["How long is she?", SAID[0], "How wide?", SAID[1]]
    assert server.said(homes[0].id)[-1] == SAID[2]
    assert all(problem is None for _, problem in server.run(server.desk.verify()))


def test_the_command_llm_goes_on_with_its_conversation(
    clients: Path, endpoint: Start, script: Script, tmp_path: Path
) -> None:
    server = endpoint(script({"text": SAID[0]}, {"text": SAID[1]}))
    named = [{"model_id": "boat", "model_name": server.model, "api_base": f"{server.url}/v1"}]
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "extra-openai-models.yaml").write_text(json.dumps(named))
    at = {"LLM_USER_PATH": str(tmp_path / "llm"), "OPENAI_API_KEY": "none"}
    assert ran(clients, "llm", "-m", "boat", "How long is she?", **at).strip() == SAID[0]
    assert ran(clients, "llm", "-c", "How wide?", **at).strip() == SAID[1]
    (home,) = server.run(server.desk.conversations())
    assert server.said(home.id) == ["How long is she?", SAID[0], "How wide?", SAID[1]]


ADAPTERS = [["adapter_pydantic_ai"], ["adapter_langchain", "middleware"], ["adapter_langchain", "hook"]]


@pytest.mark.parametrize("adapter", ADAPTERS, ids="-".join)
def test_the_adapters_of_the_examples_keep_a_long_run_within_its_window(clients: Path, adapter: list[str]) -> None:
    script, *more = adapter
    folder = str(ROOT / "examples" / "adapters")
    out = ran(clients, "python", str(HERE / f"{script}.py"), folder, *more, PYTHONPATH=str(ROOT / "src"))
    told = json.loads(out)
    assert told["said"] == "All of them are dry."
    assert told["requests"] == 41
    assert told["largest"] < 4 * 2000 * 1.5  # characters of 2,000 tokens, and not those of forty logs
    assert told["paired"]
