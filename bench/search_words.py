"""Words among a million messages, found by our index and by a plain FTS5 table, ranked by its own bm25."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import ParamSpec, TypeVar

from bench import corpus
from bench.figure import Figure, cost
from bench.plain import Filled, Plain, timing
from bench.table import Times, judged, ms, show
from bench.turn import apart
from recto.base.locations import SEARCH_FILE
from recto.recall.indexed_message import TALK, TOOLS
from recto.search.finder import Finder, Query
from recto.search.keyword_index import NO_FILTER, Filter, IndexItem, KeywordIndex
from recto.search.terms import STOP_WORDS

P = ParamSpec("P")
T = TypeVar("T")

GOAL_SEARCH_S = 0.030

FIRST, SPAN = datetime(2023, 1, 1), timedelta(days=3 * 365)
QUERIES, MOST = 200, 60
AT_ONCE = 8
SORTS = ("rare", "common", "mixed")
FILTERS = {
    "no filter": NO_FILTER,
    "kind": Filter("user"),
    "a month": Filter(since="2024-03-01", before="2024-04-01"),
    "kind and a year": Filter("tool", "2024-01-01", "2025-01-01"),
}
SENTENCES, NAMES = 20_000, 100_000
UNCOMMON = 4


@dataclass(frozen=True, slots=True)
class WordQuery:
    sort: str
    text: str


@dataclass(slots=True)
class Searched:
    """Of one filter: seconds by sort of query, and of the queries that FTS5 finds something for how many we do well."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {sort: [] for sort in SORTS})
    computed: list[float] = field(default_factory=list)
    """What of all of them was not the machine's other work."""
    answerable: int = 0
    whole: int = 0
    """Where our first hit holds all words."""

    def timed(self, sort: str, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        computed = time.thread_time()
        found, took = timing(work, *args, **named)
        self.computed.append(time.thread_time() - computed)
        self.seconds[sort].append(took)
        return found


Compared = dict[str, tuple[Searched, Searched]]


def show_finding(messages: int, conversations: int, home: Path) -> None:
    filled, compared = apart(_finding, home, messages, conversations)
    rows = [_found_row(f"recto, {name}", ours, judge=True) for name, (ours, _) in compared.items()]
    rows += [_found_row(f"FTS5, {name}", theirs) for name, (_, theirs) in compared.items()]
    parts = (f"{sort} {part}" for sort in (*SORTS, "all") for part in ("p50", "p95"))
    (ours, theirs), (answerable, whole) = filled, _sums(compared)
    notes = (
        f"{QUERIES} queries of 1–4 words that some message holds, caches warm after one round; the {MOST} best of each",
        f"our first hit holds all words in {whole} of {answerable} cases where FTS5 finds such a message at all",
        f"filled without the store: recto {_rate(ours)}, FTS5 {_rate(theirs)} with texts",
    )
    title = f"Words among {messages:,} messages in {conversations:,} conversations, in ms"
    show(title, ("", *parts, "CPU p95", "goal"), rows, notes)


def small(home: Path) -> Iterator[Figure]:
    """Words among ten thousand messages, beside FTS5."""
    _, compared = _finding(home, 10_000, 20, 60)
    for name in ("no filter", "kind and a year"):
        ours, theirs = (_every(searched).p50 for searched in compared[name])
        yield cost(f"search: words, {name}", ours, "FTS5", theirs)


def _every(searched: Searched) -> Times:
    return Times(tuple(second for seconds in searched.seconds.values() for second in seconds))


def _rate(filled: Filled) -> str:
    return f"{filled.count / filled.seconds:,.0f} messages a second, {filled.bytes / 1e6:,.0f} MB"


def _sums(compared: Compared) -> tuple[int, int]:
    ours = [each for each, _ in compared.values()]
    return sum(each.answerable for each in ours), sum(each.whole for each in ours)


def _found_row(name: str, searched: Searched, *, judge: bool = False) -> list[str]:
    every = _every(searched)
    parts = [*(Times(tuple(seconds)) for seconds in searched.seconds.values()), every]
    goal = judged(every.p95, GOAL_SEARCH_S, "p95 ≤ 30 ms") if judge else ""
    times = [ms(value) for each in parts for value in (each.p50, each.p95)]
    return [name, *times, ms(Times(tuple(searched.computed)).p95), goal]


def _finding(
    home: Path, messages: int, conversations: int, count: int = QUERIES
) -> tuple[tuple[Filled, Filled], Compared]:
    each = messages // conversations
    with closing(KeywordIndex(home / SEARCH_FILE)) as index, closing(Plain(home / "finding.db")) as plain:
        ours, theirs = _fill(index, plain, each, conversations)
        finder, queries = Finder(index), queries_of(each, conversations, count)
        _search(finder, plain, queries, NO_FILTER)
        compared = {name: _search(finder, plain, queries, only) for name, only in FILTERS.items()}
    sizes = [(home / name).stat().st_size for name in (SEARCH_FILE, "finding.db")]
    return (Filled(messages, ours, sizes[0]), Filled(messages, theirs, sizes[1])), compared


def _fill(index: KeywordIndex, plain: Plain, each: int, conversations: int) -> tuple[float, float]:
    """Seconds for ours and for theirs."""
    ours = theirs = 0.0
    for start in range(0, conversations, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, conversations))
        partitions = {str(number): conversation(number, each, conversations) for number in numbers}
        ours += timing(index.add, partitions)[1]
        theirs += timing(plain.add, [item for some in partitions.values() for item in some])[1]
    return ours, theirs


def conversation(number: int, size: int, conversations: int) -> list[IndexItem]:
    """User and assistant in turn, every tenth a tool; a minute apart."""
    random, begins = Random(number), FIRST + SPAN * (number / conversations)
    items = []
    for place in range(1, size + 1):
        kind = "tool" if place % 10 == 0 else "assistant" if place % 2 == 0 else "user"
        at = (begins + timedelta(minutes=place)).isoformat(timespec="seconds")
        channel = TOOLS if kind == "tool" else TALK
        items.append(IndexItem(number * size + place, _said(random), place, 1, kind, "", at, channel))
    return items


def _said(random: Random) -> str:
    """A few uncommon words, the nth of them a nth as often as the first, then two of the sentences made before."""
    names, sentences = _vocabulary()
    uncommon = [names[int(NAMES ** random.random()) - 1] for _ in range(UNCOMMON)]
    return f"{' '.join(uncommon)}. {random.choice(sentences)} {random.choice(sentences)}"


@cache
def _vocabulary() -> tuple[list[str], list[str]]:
    """A manual has only some 3,000 words: names of three syllables are the many that hardly anybody says."""
    speaker = corpus.Speaker(7)
    syllables = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
    # 7919 shares no divisor with 100 ** 3: all names differ, and neighbours do not look alike
    scattered = [number * 7919 % 100**3 for number in range(NAMES)]
    names = [syllables[n // 10_000] + syllables[n // 100 % 100] + syllables[n % 100] for n in scattered]
    return names, [speaker.text(80) for _ in range(SENTENCES)]


def queries_of(each: int, conversations: int, count: int = QUERIES) -> list[WordQuery]:
    """Of words that stand together in a message; sorts and lengths in turn."""
    random, found = Random(8), []
    rank = {name: number for number, name in enumerate(_vocabulary()[0])}
    for number in range(count):
        text = random.choice(conversation(random.randrange(conversations), each, conversations)).text
        words = list(dict.fromkeys(text.lower().replace(".", " ").replace("?", " ").replace("!", " ").split()))
        rare = sorted(words[:UNCOMMON], key=lambda word: -rank.get(word, 0))
        common = [word for word in words[UNCOMMON:] if word not in STOP_WORDS and len(word) > 1]
        sort, length = SORTS[number % 3], 1 + number // 3 % 4
        mixed = [word for pair in zip(rare, common, strict=False) for word in pair]
        found.append(WordQuery(sort, " ".join({"rare": rare, "common": common, "mixed": mixed}[sort][:length])))
    return found


def _search(finder: Finder, plain: Plain, queries: Sequence[WordQuery], only: Filter) -> tuple[Searched, Searched]:
    ours, theirs = Searched(), Searched()
    for query in queries:
        wanted = Query(query.text, filter=only, spreads=False, limit=MOST)
        found = ours.timed(query.sort, finder.find, wanted)
        rows = theirs.timed(query.sort, plain.find, query.text, only, MOST)
        ours.answerable += bool(rows)
        ours.whole += bool(rows and found.hits and plain.holds(query.text, found.hits[0].passage.item))
    return ours, theirs
