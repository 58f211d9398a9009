"""Conversations that do not fit: parallel calls, long results, missing ones, endings of two kinds. Pure, by seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from bench import corpus
from bench.wire import Wire, weight

KINDS = ("English", "English", "English", "JSON", "CJK", "base64")
TOOL = "read_document"
# What now and then one message has, in windows, and about how many characters a token of each kind has.
HUGE = 10
CHARACTERS = {"English": 4.5, "JSON": 2.5, "CJK": 1.4, "base64": 1.4}
# A result never has more: our own tool reads a document page by page.
LONGEST_RESULT = 20_000


@dataclass(frozen=True, slots=True)
class Read:
    """A call that reads a document, and what it gives; None when no result ever came."""

    id: str
    path: str
    text: str | None

    @property
    def result(self) -> str | None:
        return None if self.text is None else f"{self.path}\n\n{self.text}"

    def call(self) -> Wire:
        return {"id": self.id, "type": "function", "function": {"name": TOOL, "arguments": f'{{"path":"{self.path}"}}'}}


Round = tuple[Read, ...]


@dataclass(frozen=True, slots=True)
class Said:
    role: str
    text: str = ""
    reads: Round = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What was said before, the question, and the rounds of calls that the model has made to answer it so far."""

    number: int
    history: tuple[Said, ...]
    question: str
    rounds: tuple[Round, ...]

    def wire(self, system: str) -> list[Wire]:
        said = (*self.history, Said("user", self.question), *(Said("assistant", reads=reads) for reads in self.rounds))
        return [{"role": "system", "content": system}, *(message for each in said for message in wired(each))]


def wired(said: Said) -> Iterator[Wire]:
    message: Wire = {"role": said.role, "content": said.text or None}
    if said.reads:
        message["tool_calls"] = [read.call() for read in said.reads]
    yield message
    for read in said.reads:
        if read.result is not None:
            yield {"role": "tool", "tool_call_id": read.id, "content": read.result}


def cases(count: int, window: int) -> Iterator[Case]:
    for number in range(count):
        yield Author(number, window).case()


class Author:
    """Writes the case of a number: always the same."""

    def __init__(self, number: int, window: int) -> None:
        self.number, self.window = number, window
        self._random = Random(f"case {number}")
        self._reads = 0
        self._questions = 0

    def case(self) -> Case:
        in_loop = self._random.random() < 0.4
        history, question = self._history(), self._question(0.03)
        rounds = tuple(self._round(may_miss=False) for _ in range(self._random.randint(1, 6) if in_loop else 0))
        return Case(self.number, tuple(history), question, rounds)

    def _history(self) -> list[Said]:
        """Turns until they are well over the window."""
        wanted = self.window * self._random.uniform(1.2, 4)
        history: list[Said] = []
        total = 0
        while total < wanted:
            turn = self._turn()
            total += sum(weight(message) for said in turn for message in wired(said))
            history += turn
        return history

    def _turn(self) -> list[Said]:
        asked = Said("user", self._question(0.005))
        rounds = self._random.randint(1, 4) if self._random.random() < 0.5 else 0
        reads = [Said("assistant", self._aside(), self._round(may_miss=True)) for _ in range(rounds)]
        return [asked, *reads, Said("assistant", self._text(2_000, 0.005))]

    def _question(self, huge: float) -> str:
        self._questions += 1
        return f"Question {self._questions} of case {self.number}: {self._text(1_500, huge)}"

    def _aside(self) -> str:
        return self._passage("English", 120) if self._random.random() < 0.5 else ""

    def _round(self, *, may_miss: bool) -> Round:
        return tuple(self._read(may_miss) for _ in range(self._random.choice((1, 1, 1, 2, 3, 4))))

    def _read(self, may_miss: bool) -> Read:
        self._reads += 1
        path = f"note-{self._reads}.md"
        is_missing = may_miss and self._random.random() < 0.01
        length = LONGEST_RESULT - 100 if self._random.random() < 0.02 else self._length(6_000)
        text = self._passage(self._random.choice(KINDS), length).strip()
        return Read(f"call_{self.number}_{self._reads}", path, None if is_missing else text)

    def _text(self, most: int, huge: float) -> str:
        kind = self._random.choice(KINDS)
        is_huge = self._random.random() < huge
        return self._passage(kind, int(HUGE * self.window * CHARACTERS[kind]) if is_huge else self._length(most))

    def _length(self, most: int) -> int:
        """Mostly short, now and then long."""
        return int(40 + most * self._random.random() ** 3)

    def _passage(self, kind: str, characters: int) -> str:
        return corpus.passage(kind, characters, self._random)
