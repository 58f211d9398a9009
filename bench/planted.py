"""Conversations of eight kinds with twelve statements planted in each, one of every sort. Pure, by seed.

The texts are in `planted_text/`, one file for each language: scenes of a few turns, "U", "A" or "T" and what is said.
Behind "=>" stands what tells the statement, joined by "&"; "was" is a value that it took the place of, and behind "?"
is how somebody would ask for it who does not know it. "~" is time that passes before the rest of a scene.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

from bench import corpus
from bench.wire import tokens

FOLDER = Path(__file__).parent / "planted_text"
ROLES = {"U": "user", "A": "assistant", "T": "tool"}
SORTS = (
    "decision",
    "prohibition",
    "correction",
    "task",
    "figure",
    "date",
    "deadline",
    "path",
    "command",
    "name",
    "question",
    "preference",
)
KINDS = ("planning", "support", "coding", "research", "german", "spanish", "tables", "logs")
LANGUAGES = {"german": "de", "spanish": "es"}
# Of three scenes in between, one is of the conversation's own kind.
OWN_SHARE = 0.34
# The last statement is said before this share of the conversation is over.
SPREAD = 0.7
_PLACE = re.compile(r"\{([a-z]+\d?)\}")


@dataclass(frozen=True, slots=True)
class Statement:
    sort: str
    told_by: tuple[str, ...]
    """All of these, close to each other."""
    was: str = ""
    """The value that it replaces."""
    question: str = ""
    """How somebody asks for it who does not know it."""
    earlier: str = ""
    """What was said when it had that value."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    text: str
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    kind: str
    turns: tuple[Turn, ...]

    @property
    def statements(self) -> list[Statement]:
        return [each for turn in self.turns for each in turn.statements]

    @property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.turns)


def has(value: str, text: str) -> bool:
    """Whether the text has it as it was written, and not as a part of something longer."""
    return re.search(rf"(?<![\w.,/-]){re.escape(value)}(?![\w/]|[.,-]\d)", text, re.IGNORECASE) is not None


def is_told(statement: Statement, text: str) -> bool:
    """In one line, or in two that follow each other: a question and its answer."""
    return _stand_together(statement.told_by, text)


def is_outdated(statement: Statement, text: str) -> bool:
    """Whether the former value stands there, and nothing says what it is now."""
    value, *subject = statement.told_by
    if not statement.was or has(value, text):
        return False
    quotes = (line.partition(": ")[2] or line for line in text.splitlines() if has(statement.was, line))
    return _stand_together((statement.was, *subject), text) or any(quote in statement.earlier for quote in quotes)


def _stand_together(parts: tuple[str, ...], text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    near = [*lines, *(f"{one}\n{other}" for one, other in pairwise(lines))]
    return any(all(_part(part, place) for part in parts) for place in near)


def _part(part: str, text: str) -> bool:
    """A word may have an ending, a value may not."""
    return has(part, text) if re.search(r"[\d/.]", part) else part.casefold() in text.casefold()


def chat(kind: str, seed: int, size: int) -> Chat:
    """About so many tokens, the statements all over it: always the same for the same seed."""
    return Author(kind, seed).chat(size)


# -- the texts


@cache
def _sections(language: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in (FOLDER / f"{language}.txt").read_text("utf-8").split("## ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = [scene.strip() for scene in body.strip().split("\n\n")]
    return found


@cache
def words(language: str) -> dict[str, list[str]]:
    """By name: what fills a place."""
    lines = (line.partition(": ") for line in _sections(language)["words"])
    listed = {name: rest.split(";" if ";" in rest else ",") for name, _, rest in lines}
    return {name: [each.strip() for each in words] for name, words in listed.items()}


@cache
def _paragraphs(language: str) -> list[str]:
    """Real ones where they lie beside the project."""
    path = corpus.DATA / "xquad" / f"{language}.json"
    if not path.is_file():
        return []
    articles = json.loads(path.read_bytes())["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


@dataclass(slots=True)
class Author:
    kind: str
    seed: int
    _random: Random = field(init=False)
    _used: set[str] = field(default_factory=set)
    _decks: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = Random(f"planted {self.kind} {self.seed}")

    @property
    def language(self) -> str:
        return LANGUAGES.get(self.kind, "en")

    def chat(self, size: int) -> Chat:
        [[first]] = self._scene(self._random.choice(_sections(self.language)[f"open {self.kind}"][0].splitlines()))
        turns = [first, Turn("assistant", self._filled("{talk}"))]
        for said in self._told(size):
            turns += said
        return Chat(self.kind, tuple(turns))

    def _told(self, size: int) -> Iterator[list[Turn]]:
        """Scenes until it is long enough; what comes later in a scene comes a few scenes later."""
        planted = self._planted()
        step = size * SPREAD / len(planted)
        due = [step * (at + self._random.uniform(0.1, 0.9)) for at in range(len(planted))]
        waiting: list[tuple[float, list[Turn]]] = list(zip(due, planted, strict=True))
        said = 0.0
        while said < size:
            is_due = waiting and waiting[0][0] <= said
            added = waiting.pop(0)[1] if is_due else self._scene(self._aside())[0]
            said += sum(tokens(turn.text) + 4 for turn in added)
            yield added

    def _planted(self) -> list[list[Turn]]:
        """One scene of each sort in any order; a correction has its former value in an earlier place."""
        sorts = list(SORTS)
        self._random.shuffle(sorts)
        made: list[list[Turn]] = []
        for sort in sorts:
            scene = self._random.choice(_sections(self.language)[sort])
            first, *later = self._scene(scene, sort)
            if later:
                made.insert(self._random.randint(0, len(made)), first)
            made.append(later[0] if later else first)
        return made

    def _aside(self) -> str:
        own = f"aside {self.kind}"
        name = own if own in _sections(self.language) and self._random.random() < OWN_SHARE else "aside"
        if not self._decks.get(name):
            self._decks[name] = self._random.sample(_sections(self.language)[name], len(_sections(self.language)[name]))
        return self._decks[name].pop()

    def _scene(self, written: str, sort: str = "") -> list[list[Turn]]:
        values: dict[str, str] = {}
        parts: list[list[Turn]] = [[]]
        for line in written.splitlines():
            if line == "~":
                parts.append([])
            else:
                earlier = "\n".join(turn.text for turn in parts[0])
                parts[-1].append(self._turn(line, sort, values, earlier))
        return parts

    def _turn(self, line: str, sort: str, values: dict[str, str], earlier: str) -> Turn:
        text, _, mark = line[2:].partition(" => ")
        said = self._filled(text.replace("\\n", "\n"), values)
        if not mark:
            return Turn(ROLES[line[0]], said)
        told, _, question = mark.partition(" ? ")
        told, _, was = told.partition(" was ")
        parts = tuple(self._filled(part, values) for part in told.split(" & "))
        return Turn(ROLES[line[0]], said, (Statement(sort, parts, self._filled(was, values), question, earlier),))

    # -- what fills the places

    def _filled(self, text: str, values: dict[str, str] | None = None) -> str:
        """With values, each name has one for all of a scene."""
        if values is None:
            return _PLACE.sub(lambda found: self._made(found[1]), text)
        return _PLACE.sub(lambda found: self._value(found[1], values), text)

    def _value(self, name: str, values: dict[str, str]) -> str:
        """None twice in a chat as long as there are others; talk is always new."""
        if name in ("talk", "document"):
            return self._made(name)
        if name not in values:
            made = [self._made(name.rstrip("2")) for _ in range(20)]
            values[name] = next((each for each in made if each not in self._used), made[0])
            self._used.add(values[name])
        return values[name]

    def _made(self, name: str) -> str:
        known, number = words(self.language), self._random.randint
        one, other = self._random.sample(words("en")["stem"], 2)
        match name:
            case "talk":
                return " ".join(self._sentence() for _ in range(number(2, 8)))
            case "person":
                return self._filled("{first} {last}")
            case "count" | "port":
                return str(number(101, 989) if name == "count" else number(3100, 9900))
            case "small" | "n" | "m" | "tens" | "thousands" | "hundreds" | "year":
                low, high = {"small": (3, 40), "n": (4, 28), "m": (1, 12), "year": (2027, 2029)}.get(name, (2, 48))
                return str(number(low, high) if name != "hundreds" else number(11, 98) * 10)
            case "host":
                return f"{one}-{number(2, 40)}.example.org"
            case "path":
                return self._random.choice(
                    (f"src/{one}/{other}.py", f"/srv/{one}/{other}", f"docs/{one}_{other}.md", f"~/{one}/{other}.xlsx")
                )
            case "command":
                return self._random.choice(
                    (f"make {one}-{other}", f"./bin/{one} --{other} {number(2, 30)}", f"docker restart {one}_{other}")
                )
            case "version":
                return f"{number(2, 9)}.{number(0, 20)}.{number(1, 30)}"
            case "ticket":
                return f"{one[:3].upper()}-{number(1000, 9999)}"
            case "percent":
                return f"{number(11, 79)}.{number(1, 9)} %"
            case "time":
                return f"{number(8, 10)}:{self._random.choice(('15', '30', '45'))}"
            case "document":
                found = _paragraphs(self.language)
                return self._random.choice(found) if found else " ".join(self._filled("{talk}") for _ in range(8))
            case _ if name in known:
                return self._filled(self._random.choice(known[name]))
            case _:
                return self._machine_made(name)

    def _sentence(self) -> str:
        made = self._filled(self._filled(self._random.choice(words(self.language)["sentence"])))
        return made.replace(" ,", ",").replace(" .", ".")

    def _stem(self) -> str:
        return self._random.choice(words("en")["stem"])

    def _machine_made(self, name: str) -> str:
        """What fills windows: nothing in it is planted."""
        number, stem = self._random.randint, self._stem
        rows = range(number(12, 40))
        match name:
            case "table":
                made = [self._filled("{first} {last}") + f" | {number(2, 90)} | {number(10, 900)}.50" for _ in rows]
                return "\n".join(["name | pieces | amount", "--- | --- | ---", *made])
            case "log":
                made = [f"02:{at:02}:{number(10, 59)} INFO {stem()}: job {number(100, 99_000)} done" for at in rows]
                return "\n".join([*made, f"02:58:41 WARN {stem()}: slow answer, {number(900, 4000)} ms"])
            case "files":
                return "\n".join(f"-rw-r--r-- 1 web web {number(12, 99_000)} {stem()}_{stem()}.py" for _ in rows)
            case "tests":
                made = [f"tests/test_{stem()}.py {'.' * number(3, 30)}" for _ in rows]
                return "\n".join(
                    ["==== test session starts ====", *made, f"{number(60, 400)} passed in {number(2, 9)}s"]
                )
            case "source":
                made = [f"    {stem()}.set({number(12, 999)}, keep={stem()})" for _ in rows]
                return "\n".join([f"def load_{stem()}():", *made])
        raise KeyError(name)
