"""Makes the stored conversations: thirty, with one to ten compactions each, as the code of the day compacts them.

What follows must show, edit, undo and continue each of them. Run once, and commit what it writes:
`python -m tests.compaction.stored.make`. The texts are those of `bench/summary_data`.
"""

import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from bench.summary_data import FOLDER, conversations

from recto import Tool, ToolResult
from recto.api.blocking import Talk, open_desk

HERE = Path(__file__).parent
WORLD = HERE / "stored.tar.xz"
SCHEMA = {"type": "object", "properties": {}}
_numbers = count(1)


def exchanges(language: str) -> list[tuple[str, str]]:
    """What people of a language said, and the replies."""
    found: list[tuple[str, str]] = []
    for conversation in conversations(FOLDER):
        if conversation.language != language:
            continue
        before = ""
        for said in conversation.messages:
            if said.role == "user":
                before = f"{before}\n{said.text}".strip()
            elif said.role == "assistant" and not said.is_call and before:
                found.append((before, said.text))
                before = ""
    return found


def summary_of(pairs: list[tuple[str, str]], number: int) -> str:
    """As a model would write it, more or less: half of a sentence of each message."""
    told = [text.splitlines()[0][:90] for text, _ in pairs[:: max(1, len(pairs) // 8)]]
    return f"Part {number}. " + " ".join(line.rstrip(".!? ") + "." for line in told if line)


class World:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "models").mkdir()
        (home / "config.toml").write_text("[context]\nprepare_at = 0.0\n")

    def talk(
        self, title: str, language: str, compactions: int, *, by_model: bool, start: int = 0, **settings: Any
    ) -> Talk:
        """Talks until so many compactions have come."""
        pairs = exchanges(language)[start:]
        replies: list[dict[str, Any]] = [{"text": reply} for _, reply in pairs]
        summaries = [{"when": "summary", "text": summary_of(pairs[at * 6 :], at + 1)} for at in range(12)]
        limit = settings.pop("limit", 2600)
        talk = self.open(title, {"limit": limit, "summarizes": by_model, "steps": [*replies, *summaries]}, **settings)
        found = 0
        for text, _ in pairs:
            before = talk.compaction()
            talk.ask(text)
            found += talk.compaction() != before
            if found == compactions:
                break
        assert found == compactions, (title, found)
        return self.named(talk, title)

    def open(self, title: str, script: dict[str, Any], **settings: Any) -> Talk:
        name = f"{next(_numbers):02}"
        (self.home / "models" / f"{name}.json").write_text(json.dumps(script, ensure_ascii=False))
        desk = open_desk(home=self.home, model=f"scripted:models/{name}.json")
        return desk.conversation(settings={f"context.{key}": value for key, value in settings.items()})

    def named(self, talk: Talk, title: str) -> Talk:
        with open_desk(home=self.home) as desk:
            desk.rename(talk.id or "", title)
        return talk


def run_of_tools(world: World, title: str, language: str, compactions: int) -> None:
    """Files read and changed, commands that fail and then work, and what the user asks in between."""

    def steps() -> Iterator[dict[str, Any]]:
        for number in count(1):
            for name, arguments in (
                ("read_file", {"path": f"src/part_{number}.py"}),
                ("run_command", {"command": f"pytest tests/test_{number}.py"}),
                ("edit_file", {"path": f"src/part_{number}.py", "text": f"LIMIT = {number * 10}"}),
                ("run_command", {"command": f"pytest tests/test_{number}.py"}),
            ):
                yield {"tool_calls": [{"name": name, "arguments": arguments, "id": f"call_{number}_{name}"}]}
            yield {"text": f"Part {number} works now."}

    pairs = exchanges(language)
    found, made = 0, steps()
    script = [next(made) for _ in range(400)]
    tools = [Tool(name, name, SCHEMA) for name in ("read_file", "run_command", "edit_file")]
    talk = world.open(title, {"limit": 4000, "summarizes": False, "steps": script})
    for number, (text, _) in enumerate(pairs):
        before = talk.compaction()
        reply = talk.ask(text, tools=tools)
        runs = 0
        while reply.pending_calls:
            runs += reply.pending_calls[0].name == "run_command"
            output = (
                f"FAILED tests/test_{number}.py::test_limit - assert {number} == 3"
                if runs == 1
                else "12 passed in 0.4s"
            )
            content = output if reply.pending_calls[0].name == "run_command" else "def limit():\n    return 3\n" * 12
            reply = talk.ask([ToolResult(reply.pending_calls[0].id, reply.pending_calls[0].name, content)], tools=tools)
        found += talk.compaction() != before
        if found >= compactions:
            break
    assert found >= compactions, (title, found)
    world.named(talk, title)


def make(home: Path) -> None:
    world = World(home)
    for language, compactions in (
        ("en", 1),
        ("en", 3),
        ("en", 10),
        ("de", 2),
        ("de", 6),
        ("fr", 4),
        ("es", 5),
        ("zh", 3),
        ("zh", 7),
        ("ru", 2),
    ):
        world.talk(f"sentences {language} {compactions}", language, compactions, by_model=False)
    for language, compactions in (("en", 1), ("en", 5), ("de", 3), ("fr", 2), ("es", 8), ("zh", 4)):
        world.talk(f"model {language} {compactions}", language, compactions, by_model=True)
    for language, compactions in (("en", 6), ("de", 8), ("es", 7), ("fr", 10)):
        world.talk(f"set aside {language}", language, compactions, by_model=False, summary_tokens=220)
    for language in ("en", "zh"):
        world.talk(f"truncated {language}", language, 2, by_model=False, summary_tokens=96)
    for language in ("de", "en"):
        talk = world.talk(f"edited {language}", language, 2, by_model=language == "de")
        block = talk.compaction()
        assert block is not None
        talk.edit_summary(block.summary + "\nAda: 340 €, 12 May, never by phone.")
        talk.ask("Go on.")
    for language in ("es", "en"):
        talk = world.talk(f"taken back {language}", language, 3, by_model=language == "es", start=20)
        talk.uncompact()
        talk.ask("Go on.")
    for language, compactions in (("en", 1), ("de", 3), ("en", 6), ("es", 2)):
        run_of_tools(world, f"run {language} {compactions}", language, compactions)


def shorten(models: Path) -> None:
    """The replies are in the store: what is asked from now on gets another."""
    for path in models.iterdir():
        script = json.loads(path.read_text())
        summary = {"when": "summary", "text": "They went on. The fee is 350 euros, due on 4 June."}
        path.write_text(json.dumps(script | {"steps": [{"text": "Noted. " * 40}, summary]}))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir()
        os.chdir(home)  # paths of scripts are those of the folder
        make(home)
        shorten(home / "models")
        kept = [home / name for name in ("config.toml", "models", "recto.db")]
        with tarfile.open(WORLD, "w:xz", preset=9) as archive:
            for path in kept:
                archive.add(path, f"home/{path.name}")
    print(WORLD.stat().st_size)


if __name__ == "__main__":
    main()
