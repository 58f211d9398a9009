"""An agent that people use holds a conversation ten times as long as its model's window: aider, at its command line."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Start
from tests.serve.test_clients import ENVIRONMENTS, HERE, installed

from recto.providers.model import Model, VocabularyCounter
from recto.providers.openai import OpenAIFormat
from recto.window.request import Piece
from recto.wire import dumpb

pytestmark = [pytest.mark.slow, pytest.mark.untraced]
WINDOW = 8192
PARTS = ["keel", "mast", "boom", "sail", "hull", "deck", "rope", "cleat", "winch", "anchor", "chain", "rudder", "plank"]
KEY = "The spare key hangs behind the brass barometer."
OPTIONS = [
    *("--model", "openai/recto", "--chat-mode", "ask", "--map-tokens", "0"),
    *("--no-git", "--yes-always", "--no-pretty", "--no-fancy-input", "--no-detect-urls", "--no-suggest-shell-commands"),
    *("--no-check-update", "--no-show-model-warnings", "--no-show-release-notes", "--analytics-disable"),
    *("--max-chat-history-tokens", "10000000"),  # it sends all of its history, every time
]


def lines(number: int) -> list[str]:
    random = Random(1)
    texts = [" ".join(random.choice(PARTS) for _ in range(1400)) for _ in range(number)]
    said = [f"Part {at}: the code of locker {at} is K{at * 37 + 1000}. {text}." for at, text in enumerate(texts)]
    said[2] += f" {KEY}"
    return [*said, "Where does the spare key hang?"]


def tokens(messages: list[Any]) -> int:
    counter = VocabularyCounter(Model("scripted:x", "scripted", "x", WINDOW, "", exact=True), OpenAIFormat())
    counts = asyncio.run(counter.count([Piece("message", dumpb(message)) for message in messages]))
    return sum(count.tokens for count in counts) + counter.priming.tokens


def test_aider_holds_a_conversation_ten_times_its_models_window(
    endpoint: Start, script: Script, sent: Callable[[], list[Any]], tmp_path: Path
) -> None:
    aider = installed(HERE / "agent.txt", ENVIRONMENTS / "agent") / "aider"
    reply, summary = {"text": "Noted, I keep it in mind."}, {"text": "They spoke of a boat.", "when": "summary"}
    server = endpoint(script(reply, summary, limit=WINDOW))
    said, work = lines(60), tmp_path / "work"
    work.mkdir()
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    known |= {"HOME": str(tmp_path), "OPENAI_API_BASE": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
    known |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # nothing is fetched
    done = subprocess.run(
        [str(aider), *OPTIONS], input="\n".join([*said, ""]), env=known, cwd=work, capture_output=True, text=True
    )
    assert done.stdout.count("Noted, I keep it in mind.") == len(said), done.stdout[-2000:] + done.stderr[-2000:]

    (home,) = server.run(server.desk.conversations())
    stored = server.said(home.id)
    kept = [text for text in stored if text.startswith(tuple(said))]  # it adds a reminder to the last one, each time
    assert [text.startswith(own) for text, own in zip(kept, said, strict=True)] == [True] * len(said)
    assert tokens([{"role": "user", "content": text} for text in stored]) > 10 * WINDOW
    assert max(tokens(body["messages"]) for body in sent()) <= WINDOW
    last = next(body for body in reversed(sent()) if said[-1] in str(body["messages"][-1]))
    assert KEY in str(last["messages"])
    assert all(problem is None for _, problem in server.run(server.desk.verify()))
