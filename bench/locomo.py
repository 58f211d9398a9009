"""LoCoMo's conversations as chats: one speaker as the user, the other as the assistant, and the questions about them.

For measuring only: its licence keeps it out of the project. BENCH_DATA names another folder with the same layout.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.corpus import DATA

ADVERSARIAL = 5
"""Questions without an answer in the conversation."""
# What is said in a sitting has no times of its own.
APART = timedelta(seconds=30)
_TURN = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    role: str
    text: str
    """With the speaker's name in front, as transcripts have it, and what a shared picture shows behind."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: tuple[str, ...]
    """The turns that answer it."""
    category: int


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def files() -> list[Path]:
    return sorted((DATA / "locomo").glob("*.json"))


def conversations() -> list[Conversation]:
    found = [sample for path in files() for sample in json.loads(path.read_text("utf-8"))]
    return [_conversation(sample) for sample in found]


def _conversation(sample: dict[str, Any]) -> Conversation:
    turns = tuple(_turns(sample["conversation"]))
    known = {turn.id for turn in turns}
    return Conversation(str(sample["sample_id"]), turns, tuple(_questions(sample["qa"], known)))


def _turns(told: dict[str, Any]) -> Iterator[Turn]:
    sittings = sorted(int(key.split("_")[1]) for key in told if re.fullmatch(r"session_\d+", key))
    for number in sittings:
        began = _began(told[f"session_{number}_date_time"])
        for place, each in enumerate(told[f"session_{number}"]):
            role = "user" if each["speaker"] == told["speaker_a"] else "assistant"
            shown = f" [shares {each['blip_caption']}]" if each.get("blip_caption") else ""
            yield Turn(each["dia_id"], role, f"{each['speaker']}: {each['text']}{shown}", began + place * APART)


def _began(text: str) -> datetime:
    return datetime.strptime(text.replace(",", ""), "%I:%M %p on %d %B %Y").replace(tzinfo=UTC)


def _questions(told: list[dict[str, Any]], known: set[str]) -> Iterator[Question]:
    for each in told:
        named = [id for text in each.get("evidence", ()) for id in _TURN.findall(str(text))]
        evidence = tuple(dict.fromkeys(id for id in named if id in known))
        if each["category"] != ADVERSARIAL and evidence:
            yield Question(each["question"], evidence, each["category"])
