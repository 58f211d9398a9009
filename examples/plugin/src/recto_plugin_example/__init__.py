"""One of each kind of plugin. The entry points in pyproject.toml name them; Recto loads each when it is first used."""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recto.providers.model import Done, Model, ReplyPart, TextPart, VocabularyCounter
from recto.providers.openai import OpenAIFormat
from recto.settings.strategy import RecallPolicy, Strategy
from recto.sources.source import Tool
from recto.sources.tools import LocalTool
from recto.window.request import Purpose
from recto.wire import loads


class EchoProvider:
    """`echo:anything` repeats the last message. It is sent the bytes of OpenAI's format."""

    name = "echo"

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.format = OpenAIFormat()

    async def model(self, name: str) -> Model:
        id = name.removeprefix("echo:")
        return Model(f"echo:{id}", "echo", id, 8192, "built in", summarizes=False)

    async def counter(self, model: Model) -> VocabularyCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        content: Any = loads(body)["messages"][-1]["content"]
        yield TextPart(content if isinstance(content, str) else content[-1]["text"])
        yield Done("stop")

    async def close(self) -> None:
        return None


SHORT_MEMORY = Strategy("short-memory", summarizes=True, extends_tail=False, recall=RecallPolicy(max_tokens=512))
"""A compaction keeps only the latest messages beside its summary, and little is recalled."""


class Letters:
    """An embedder by the letters of a text. Vectors of another key are never compared with these."""

    key = "1"

    def __init__(self, home: Path) -> None:
        self._letters = "abcdefghijklmnopqrstuvwxyz"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        counts = [Counter(text.lower()) for text in texts]
        return [[float(count[letter]) for letter in self._letters] for count in counts]

    def close(self) -> None:
        return None


def count_words(arguments: Mapping[str, Any]) -> str:
    return f"{len(str(arguments['text']).split())} words"


COUNT_WORDS = LocalTool(
    Tool(
        "count_words",
        "Count the words of a text.",
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
    count_words,
)
