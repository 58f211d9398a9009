"""A long conversation with many topics that come back: what summary and ledger tell of a topic when it returns.

Each topic has statements of its own, said once; then others follow until it is dropped. With and without what was set
aside.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench import peers
from bench.compactions import compacted, in_parallel
from bench.lossy import Lossy
from bench.runs import Run, Turn
from bench.table import show
from recto.compaction import summary_writer

CHATS, WINDOW, COMPACTIONS, TOPICS = 8, 4_096, 16, 9
SYSTEM = "You help with whatever comes up."
THINGS = (
    "sailboat mooring harbour,greenhouse tomato heating,choir rehearsal concert,kitchen renovation tiler,"
    "beehive honey hive,marathon training trainer,archive scanner negatives,bakery oven sourdough,"
    "puppet theatre curtain,observatory telescope dome,Fahrrad Werkstatt Lenker,huerto riego tomates"
)
SAID = (
    "The {0} costs {n} euros a year.",
    "Never let anybody but {name} touch the {1}.",
    "We decided to order the {2} from {name} & Sons.",
    "The {1} must be finished by March {day}.",
)
NAMES = ["Ilse", "Marek", "Yuki", "Priya", "Tomas", "Nadia", "Oskar", "Leila", "Hugo", "Vera", "Samir", "Elena"]
ASIDES = (
    "I read for a while about {a} today and it was rather long, with {m} pages and a picture on most of them.",
    "Somebody in the street talked about {a}; I did not catch all of it, but {m} people stood around.",
    "What do you think of {a} in general? I keep hearing about it, {m} times this week alone.",
)
MATTERS = [
    "tides",
    "bridges",
    "opera",
    "chess",
    "glaciers",
    "tramways",
    "maps",
    "comets",
    "markets",
    "lighthouses",
    "mosaics",
    "clocks",
]


@dataclass(frozen=True, slots=True)
class Job:
    seed: int
    returns: bool
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    words: tuple[str, ...]
    statements: tuple[str, ...]
    values: tuple[str, ...]


def show_levels(quick: bool, seed: int = 0) -> None:
    seeds = [seed * CHATS + at for at in range(2 if quick else CHATS)]
    rows = []
    for name, lossy in (("sentences", False), ("lossy model", True)):
        for how, returns in (("without levels", False), ("with levels", True)):
            found = in_parallel(_told, [Job(each, returns, lossy) for each in seeds])
            told, wanted = sum(one for one, _ in found), sum(all_ for _, all_ in found)
            rows.append([f"{name}, {how}", f"{wanted}", f"{told / wanted:.0%}"])
    title = f"A topic that returns after {COMPACTIONS - 1} compactions at {WINDOW:,}: {len(seeds)} chats, seed {seed}"
    show(title, ("", "statements", "told at the next compaction"), rows)


def _told(job: Job) -> tuple[int, int]:
    """How many statements of the returning topic stand in summary and ledger, of those said."""
    if not job.returns:
        summary_writer.RETURNED_SHARE = 0.0  # in a process of its own
    random = Random(f"levels {job.seed}")
    topics = list(_topics(random))
    first = topics[0]
    peers.FOLDER.mkdir(exist_ok=True)
    writer = Lossy(job.seed) if job.lossy else None
    with (
        tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder,
        compacted(Path(folder) / "home", _run(topics, random), WINDOW, COMPACTIONS, writer) as found,
    ):
        before = len(found.blocks)
        for number in range(200):
            found.talk.ask(f"Back to the {', the '.join(first.words)}: what did I say, and what follows? ({number})")
            block = found.talk.compaction()
            if block and block != found.blocks[-1]:
                found.blocks.append(block)
                break
        assert len(found.blocks) > before
        return sum(value in found.sent for value in first.values), len(first.values)


def _topics(random: Random) -> Iterator[Topic]:
    for words in random.sample(THINGS.split(","), TOPICS):
        said, values = [], []
        for form in SAID:
            fill = {"n": f"{random.randint(1100, 9900)}", "name": f"{random.choice(NAMES)} {random.choice(NAMES)}er"}
            fill["day"] = f"{random.randint(1, 28)}"
            text = form.format(*words.split(), **fill)
            said.append(text)
            values.append(text.rstrip("."))
        yield Topic(tuple(words.split()), tuple(said), tuple(values))


def _run(topics: list[Topic], random: Random) -> Run:
    """Each topic in turn, and much else in between."""
    turns = []
    for at in range(2000):
        if at % 30 == 3 and at // 30 < len(topics):
            turns += [Turn(text, (), "Noted.") for text in topics[at // 30].statements]
        text = random.choice(ASIDES).format(a=random.choice(MATTERS), m=random.randint(3, 90))
        turns.append(Turn(text, (), f"There is much to say about that, {random.choice(NAMES)} would agree."))
    return Run(SYSTEM, tuple(turns))
