"""Statements in the middle of a message that is larger than the window: in its condensed text, or one recall away.

The message asks for one of them, at its beginning or at its end. Through the real engine; goal: 90 % are found, and
the one that is asked for stands in the text.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import peers, planted
from bench.compactions import give_writer, in_parallel
from bench.lossy import Lossy
from bench.planted import Statement, is_told
from bench.table import judged, show
from bench.wire import tokens
from recto.api.blocking import open_desk
from recto.recall.recall_tool import recall_tool

WINDOW, SIZE = 4_096, 17_000
GOAL = 0.90


@dataclass(frozen=True, slots=True)
class Condensed:
    """What is found of the middles, added up over several messages."""

    messages: int = 0
    tokens: int = 0
    sent: int = 0
    statements: int = 0
    told: int = 0
    found: int = 0
    """In the text that is sent, or with one recall."""
    asked_told: int = 0

    def __add__(self, other: "Condensed") -> "Condensed":
        return Condensed(*(one + another for one, another in zip(self._all, other._all, strict=True)))

    @property
    def _all(self) -> Iterator[int]:
        yield from (self.messages, self.tokens, self.sent, self.statements, self.told, self.found, self.asked_told)


def show_condensed(chats: Sequence[tuple[str, int]]) -> None:
    """For conversations by kind and seed."""
    rows = {
        name: sum(in_parallel(_condensed, [(*chat, lossy) for chat in chats]), Condensed())
        for name, lossy in (("recto, sentences", False), ("recto, lossy model", True))
    }
    worst = min(each.found / each.statements for each in rows.values())
    show(
        f"A message of {SIZE:,} tokens in a window of {WINDOW:,}: statements in its middle",
        ("", "messages", "tokens", "sent", "statements", "told", "+ recall", "asked for: told"),
        [_row(name, found) for name, found in rows.items()],
        notes=(f"goal: {judged(-worst, -GOAL, f'≥ {GOAL:.0%} told or one recall away')}",),
    )


def _row(name: str, found: Condensed) -> list[str]:
    return [
        name,
        f"{found.messages}",
        f"{found.tokens // found.messages:,}",
        f"{found.sent // found.messages:,}",
        f"{found.statements}",
        f"{found.told / found.statements:.0%}",
        f"{found.found / found.statements:.0%}",
        f"{found.asked_told / found.messages:.0%}",
    ]


def _condensed(job: tuple[str, int, bool]) -> Condensed:
    kind, seed, lossy = job
    peers.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        return condensed(Path(folder) / "home", kind, seed, lossy=lossy)


def condensed(home: Path, kind: str, seed: int, *, lossy: bool, size: int = SIZE) -> Condensed:
    chat = planted.chat(kind, seed, size)
    asked = chat.statements[len(chat.statements) // 2]
    parts = [f"{asked.question}?", chat.text]
    text = "\n\n".join(parts if seed % 2 else parts[::-1])
    home.mkdir(parents=True)
    script = home / "script.json"
    steps = [{"text": "I see."}, {"error": "unreachable", "when": "summary"}]
    script.write_text(json.dumps({"limit": WINDOW, "steps": steps}), "utf-8")
    with open_desk(home=home, project=home, model=f"scripted:{script}") as desk:
        talk = desk.conversation()
        if lossy:
            give_writer(desk, talk, Lossy(seed))
        talk.ask(text)
        block = talk.compaction()
        assert block is not None
        [sent] = block.excerpts.values()
        recall = recall_tool(desk.engine.message_index, desk.store, talk.session)
        middle = _in_the_middle(chat.statements, text, sent)
        told = [each for each in middle if is_told(each, sent)]
        found = [each for each in middle if each in told or is_told(each, recall.run({"query": each.question}))]
    return Condensed(1, tokens(text), tokens(sent), len(middle), len(told), len(found), is_told(asked, sent))


def _in_the_middle(statements: Sequence[Statement], text: str, sent: str) -> list[Statement]:
    """Those that neither the beginning nor the end tells, which are sent as they are."""
    lines = sent.splitlines()
    begins = next(at for at, line in enumerate(lines) if line not in text)
    ends = next(at for at in reversed(range(len(lines))) if lines[at] not in text)
    verbatim = "\n".join((*lines[:begins], "", *lines[ends + 1 :]))
    return [each for each in statements if not is_told(each, verbatim)]
