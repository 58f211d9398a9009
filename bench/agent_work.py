"""Agent runs and what must be known to go on with them: the latest task, the changed files, the last outcomes. Pure.

Made-up runs know it by themselves; of the recorded ones (`bench.runs`) it is read from their calls and results.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from bench.planted import words
from bench.runs import Round, Run, Turn
from bench.wire import Wire, weight

SYSTEM = "You are a coding agent. Work on what the user asks, with the tools that you have."
TASKS = (
    "Please make the {one} export skip rows without a {other}. At the moment it writes empty lines.",
    "Customers see the wrong {other} on the {one} page when they switch the language. Find out why and fix it.",
    "next one: add a --{other} flag to the {one} command, default off, and a test for it",
    "The nightly {one} job dies when a {other} is missing. It should log a warning and go on instead.",
    "Can you move the {other} helpers out of the {one} module? It has become far too long.",
    "{one} needs retries when the {other} service answers with 503. Three attempts, then give up.",
    "Bitte sorge dafür, dass {one} auch leere {other}-Listen annimmt, im Moment gibt es einen Absturz.",
    "the {one} cache never forgets old {other} entries, please give it a limit",
)
REPLIES = (
    "Done: {path} handles it now, and the tests pass.",
    "I changed {path} and ran the tests; everything is green.",
    "That is in. The change is small and lives in {path}.",
)
# A run works on so many modules, each with its test.
FILES = 6
_THINGS = words("en")["stem"]
_EDITS = {"edit", "edit_file", "create", "insert", "write_file", "str_replace"}
_SHELLS = {"bash", "run_command", "shell"}
_FENCED = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_OPEN_FILE = re.compile(r"\[File: (\S+)")
_CHANGED = re.compile(r"(?:File updated|Text replaced|has been (?:edited|created)|\(\d+ lines total\))")
_TERM = re.compile(r"\d[\d.]*\d|\w{5,}")
# How the recorded runs begin what is asked, and what comes behind it.
_ASKED, _BOILERPLATE = "We're currently solving", "INSTRUCTIONS:"


@dataclass(frozen=True, slots=True)
class State:
    """What somebody must know who takes over."""

    task: str
    files: frozenset[str]
    """By name, without their folders."""
    outcomes: dict[str, frozenset[str]]
    """Of each command family, some words that its last output alone has; none if it said nothing."""


@dataclass(frozen=True, slots=True)
class Named:
    """How much of a state a text names, added up over several."""

    tasks: int = 0
    task_named: int = 0
    files: int = 0
    files_named: int = 0
    outcomes: int = 0
    outcomes_named: int = 0

    def __add__(self, other: "Named") -> "Named":
        return Named(
            self.tasks + other.tasks,
            self.task_named + other.task_named,
            self.files + other.files,
            self.files_named + other.files_named,
            self.outcomes + other.outcomes,
            self.outcomes_named + other.outcomes_named,
        )

    @property
    def share(self) -> float:
        whole = self.tasks + self.files + self.outcomes
        return (self.task_named + self.files_named + self.outcomes_named) / whole if whole else 1.0


def named(state: State, text: str, lifted: Iterable[str] = ()) -> Named:
    """`lifted` are messages that are sent word for word beside the text: a task among them is named."""
    lines = [line for line in text.splitlines() if line.strip()]
    near = [*lines, *(f"{one}\n{other}" for one, other in pairwise(lines))]
    outcomes = [_outcome_named(family, words, near) for family, words in state.outcomes.items()]
    files = [name in text for name in state.files]
    task = is_task_named(state.task, lines) or any(state.task.strip() in message for message in lifted)
    return Named(1, task, len(files), sum(files), len(outcomes), sum(outcomes))


def is_task_named(task: str, lines: Iterable[str]) -> bool:
    """By a line that quotes a good part of one of its sentences."""
    known = _plain(task)
    quotes = (_plain(part) for line in lines for part in re.split(r"(?<=[.?!:;])\s|[;…]", line))
    return any(len(quote) >= 30 and quote in known for quote in quotes)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _outcome_named(family: str, words: frozenset[str], near: Iterable[str]) -> bool:
    places = [place for place in near if family in place]
    return any(not words or any(word in place.replace(family, "") for word in words) for place in places)


# -- what a run says of itself


def state_of(messages: Sequence[Wire]) -> State:
    """Of the messages up to some point."""
    task, files, outcomes = "", set(), dict[str, frozenset[str]]()
    for message, result in pairwise(_steps(messages)):
        if message.is_task:
            task = message.text
        if changed := _changed(message, result):
            files.add(changed.rpartition("/")[2])
        if message.command and result.is_result:
            outcomes[family_of(message.command)] = _telling(result.text, message.command)
    return State(task, frozenset(files), outcomes)


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    name: str = ""
    path: str = ""
    command: str = ""
    is_task: bool = False
    is_result: bool = False


def _steps(messages: Sequence[Wire]) -> Iterator[_Step]:
    """Calls and results in turn; of a run without tools, fenced commands and what the user's side answers."""
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    fenced = False
    for message in messages:
        if message["role"] == "assistant":
            fenced = False
            for call in message.get("tool_calls") or ():
                arguments = json.loads(call["function"]["arguments"] or "{}")
                name = call["function"]["name"]
                command = arguments.get("command", "") if name in _SHELLS else ""
                yield _Step("", name, arguments.get("path") or arguments.get("filename") or "", command)
                yield _Step(results.get(call["id"], ""), is_result=True)
            if not message.get("tool_calls") and (found := _FENCED.search(message["content"] or "")):
                word, _, rest = found[1].strip().partition(" ")
                fenced = True
                first = rest.splitlines()[0].split()[0] if word == "create" and rest else ""
                command = found[1].strip() if word not in {*_EDITS, "open", "goto", "submit"} else ""
                yield _Step("", word, first, command)
        elif message["role"] == "user":
            _, begins, asked = message["content"].rpartition(_ASKED)
            # a run that ends with a command has no answer to it: the next task comes instead
            is_task = bool(begins) or not fenced
            yield _Step(asked.partition(_BOILERPLATE)[0], is_task=is_task, is_result=not is_task)
    yield _Step("")


def _changed(step: _Step, result: _Step) -> str:
    if step.name not in _EDITS or not result.is_result:
        return ""
    found = _OPEN_FILE.search(result.text)
    return step.path or (found[1] if found and _CHANGED.search(result.text) else "")


def family_of(command: str) -> str:
    """What a person would call it: the program, with its subcommand where it has some."""
    last = re.split(r"&&|;|\|", command.strip().splitlines()[0])[-1 if "cd " in command[:4] else 0].split()
    words = [word for word in last if "=" not in word] or last
    subcommand = len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and words[0] in _WITH_SUBCOMMANDS
    return " ".join(words[: 2 if subcommand else 1])


_WITH_SUBCOMMANDS = {"git", "npm", "cargo", "make", "docker", "ruff", "pip", "go"}


def _telling(output: str, command: str) -> frozenset[str]:
    found = set(_TERM.findall(output)) - set(_TERM.findall(command))
    return frozenset(found)


# -- runs that were made up


@dataclass(slots=True)
class Agent:
    """Works on one task after the other until the run is long enough."""

    seed: int
    _random: Random = field(init=False)
    _files: list[tuple[str, str]] = field(init=False)
    _calls: int = 0

    def __post_init__(self) -> None:
        self._random = Random(f"agent {self.seed}")
        pairs = [self._random.sample(_THINGS, 2) for _ in range(FILES)]
        self._files = [(f"src/{one}/{other}_rules.py", f"tests/test_{one}_{other}.py") for one, other in pairs]

    def run(self, size: int) -> Run:
        turns: list[Turn] = []
        said = 0
        while said < size:
            turns.append(self._turn())
            said += sum(map(weight, turns[-1].wire()))
        return Run(SYSTEM, tuple(turns))

    def _turn(self) -> Turn:
        one, other = self._random.sample(_THINGS, 2)
        number = self._random.randint
        path, test = self._random.choice(self._files)
        seconds, passed = f"{number(2, 40)}.{number(11, 99)}s", number(40, 900)
        failed = f"FAILED {test}::test_{other} - AssertionError: {other} is None"
        rounds = [
            self._round("Let me find it.", "search", {"pattern": f"def .*{other}"}, self._hits(one, other)),
            self._round("", "read_file", {"path": path}, self._source(one, other)),
            self._round("I see it.", "edit_file", {"path": path, "old": f"{other}()", "new": f"safe({other})"}, "ok"),
            self._round(
                "", "run_command", {"command": f"pytest -q {test}"}, f"{'.' * 30}F\n{failed}\n1 failed in {seconds}"
            ),
            self._round("Almost.", "edit_file", {"path": path, "old": "None", "new": "[]"}, "ok"),
            self._round("", "write_file", {"path": test, "content": self._source(other, one)}, "written"),
            self._round("", "run_command", {"command": "pytest -q"}, f"{'.' * 60}\n{passed} passed in {seconds}"),
            *self._others(number(0, 2), one, path),
        ]
        task = self._random.choice(TASKS).format(one=one, other=other)
        return Turn(task, tuple(rounds), self._random.choice(REPLIES).format(path=path))

    def _others(self, wanted: int, one: str, path: str) -> list[Round]:
        """Commands that not every task needs; some go wrong and stay so."""
        number = self._random.randint
        known = {
            "ruff check src": f"{path}:{number(3, 90)}:5: F841 unused variable\nFound 1 error.",
            "mypy src": f"Success: no issues found in {number(20, 200)} source files",
            f"git commit -am 'Mend {one}'": f"[main {self._random.randbytes(4).hex()[:7]}] Mend {one}\n 2 files",
            "npm run build": f"error TS{number(2000, 2999)}: Type 'string' is not assignable to type 'number'.",
            "docker compose up -d": f"Container {one}-db-1 is unhealthy",
        }
        chosen = self._random.sample(sorted(known), wanted)
        return [self._round("", "run_command", {"command": command}, known[command]) for command in chosen]

    def _round(self, text: str, name: str, arguments: dict[str, str], result: str) -> Round:
        self._calls += 1
        id = f"call_{self._calls}"
        call: Wire = {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        return Round(text, (call,), {id: result})

    def _hits(self, one: str, other: str) -> str:
        lines = sorted(self._random.sample(range(3, 400), self._random.randint(4, 14)))
        return "\n".join(
            f"src/{one}/{self._random.choice(_THINGS)}.py:{line}: def load_{other}(self):" for line in lines
        )

    def _source(self, one: str, other: str) -> str:
        made = [
            f"    {self._random.choice(_THINGS)} = {one}.{other}({self._random.randint(1, 99)})"
            for _ in range(self._random.randint(30, 110))
        ]
        return "\n".join([f"def load_{other}({one}):", *made, "    return None"])
