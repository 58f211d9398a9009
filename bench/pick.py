"""Which sources a message needs: recall, what else is chosen, tokens and time among 50, 500 and 5,000 of them.

Tools in the style of public MCP servers, rules, references and messages are in `bench/pick/`, all written for this.
Half of the messages calibrated the scores (`bench/pick_fit.py`), the other half is what is asked here. Beside us a
plain cosine of the same embedder (top 5 from 0.3 on, all from 0.7 on) and rank_bm25 (top 5). Goal: at most 10 ms a
message among 500 sources (p95), its own embedding included.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench import peers
from bench.figure import Figure, cost, share
from bench.pick_data import SERVED, SORTS, Message, filled, groups, messages, served_messages, served_sources
from bench.table import Times, judged, ms, show
from bench.wire import tokens
from recto.search.embedder import Embedder, open_embedder
from recto.search.passages import key_sentences
from recto.search.text_vectors import TextVectors
from recto.sources.candidates import CandidateCache, ChunkScores
from recto.sources.chooser import DEFAULT_LIMITS, Chooser
from recto.sources.source import Source, SourceId, Tool

GOAL_S = 0.010
SIZES, QUICK_SIZES = (50, 500, 5_000), (50, 500)
PLAIN_FLOOR, PLAIN_INCLUDE, PLAIN_MOST = 0.3, 0.7, 5
# Long enough for five thousand sources on a slow machine: what is measured is choosing, with all vectors made.
PATIENCE_S = 1800.0

WAYS = (
    "Recto, words and meaning",
    "Recto, words alone",
    "Recto, meaning alone",
    "plain cosine, 0.3 / 0.7",
    "rank_bm25, top 5",
)
MEANING, WORDS, MEANING_ALONE, PLAIN, BM25 = WAYS

Pick = Callable[[str], Sequence[SourceId]]
Scored = dict[int, list[bool]]
"""By tenths of a score: whether the sources with such a score were right."""


@dataclass(frozen=True, slots=True)
class Hand:
    sources: tuple[Source, ...]
    asked: tuple[Message, ...]

    @property
    def tokens(self) -> int:
        return sum(weight(source) for source in self.sources)


@dataclass(slots=True)
class Outcome:
    """What one way of choosing did with all messages of a size."""

    found: dict[str, list[int]] = field(default_factory=lambda: {sort: [] for sort in (*SORTS, SERVED)})
    """By sort: how many of what is needed was chosen, for each message."""
    chosen: int = 0
    wrong: int = 0
    asked: int = 0
    for_nothing: int = 0
    """Messages that need nothing and got something."""
    tokens: int = 0
    seconds: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)
    scored: Scored = field(default_factory=dict)

    def note(self, message: Message, scores: dict[SourceId, float]) -> None:
        for id, score in scores.items():
            if id not in message.harmless:
                self.scored.setdefault(int(score * 10), []).append(id in message.right)

    def add(self, message: Message, picked: Sequence[SourceId], weights: dict[SourceId, int]) -> None:
        self.found[message.sort].append(bool(message.right & set(picked)))
        self.asked += bool(message.right)
        if message.right:
            self.chosen += len(picked)
            self.wrong += len(set(picked) - message.right - message.harmless)
        else:
            self.for_nothing += bool(picked)
        self.tokens += sum(weights[id] for id in picked)

    @property
    def recall(self) -> float:
        return sum(sum(found) for found in self.found.values()) / max(1, self.asked)


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    rows, sorts, said = list[list[str]](), list[list[str]](), list[str]()
    scored: dict[str, Scored] = {}
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        for size in QUICK_SIZES if quick else SIZES:
            hands = _hands(size)
            for name, outcome in _outcomes(hands, Path(folder)):
                rows.append(_row(size, name, outcome, hands))
                if size == 500:
                    sorts.append([name, *(_share(outcome.found[sort]) for sort in SORTS[:-1])])
                    scored |= {name: outcome.scored} if outcome.scored else {}
            said.append(_told(size, hands))
        _show_served(Path(folder))
    times, counts = ("p50 ms", "p95", "CPU p95"), ("recall", "chosen", "fitting", "for nothing", "tokens", "saved")
    show("Sources chosen for a message", ("", "sources", *times, *counts, "goal"), rows, said)
    show("Recall among 500 sources, by the sort of message", ("", *SORTS[:-1]), sorts, _explained())
    _show_scores(scored)


def _show_served(folder: Path) -> None:
    """Recall and precision over servers that others wrote, with messages that nobody tuned on."""
    if not (known := served_sources()):
        print("  no public servers: they are installed by `make test`")
        return
    asked = [Hand(known, served_messages())]
    rows = [
        [
            name,
            f"{each.recall:.0%} of {each.asked}",
            f"{1 - each.wrong / max(1, each.chosen):.0%}",
            f"{each.for_nothing} of {len(each.found['nothing'])}",
            f"{each.chosen / max(1, each.asked):.1f}",
        ]
        for name, each in _outcomes(asked, folder, WAYS[:-1])
    ]
    columns = ("", "recall", "fitting", "for nothing", "chosen")
    show(f"Chosen from {len(known)} sources of two public servers", columns, rows)


def small(home: Path) -> Iterator[Figure]:
    """Among fifty sources, beside a plain cosine of the same embedder."""
    hands = [replace(hand, asked=hand.asked[:30]) for hand in _hands(50)[:2]]
    outcomes = dict(_outcomes(hands, home, (MEANING, PLAIN)))
    yield share("pick: recall", outcomes[MEANING].recall)
    if PLAIN in outcomes:
        ours, plain = (Times(tuple(outcomes[name].seconds)).p50 for name in (MEANING, PLAIN))
        yield cost("pick: a message", ours, "plain cosine", plain)


def _hands(size: int) -> list[Hand]:
    """Among fifty there is not room for all that is needed: five hands, and each message goes to where its need is."""
    sets = groups(size) if size < len(filled(0)) else (filled(size),)
    held_out = [message for message in messages() if message.is_held_out]
    hands = []
    for each in sets:
        known = {source.id for source in each}
        hands.append(Hand(each, tuple(message for message in held_out if message.right <= known)))
    return hands


def weight(source: Source) -> int:
    """In tokens of o200k, as it is sent: a tool as the JSON that describes it, a text as it is."""
    if not isinstance(source, Tool):
        return tokens(source.text)
    told = {"name": source.name, "description": source.description, "parameters": source.schema}
    return tokens(json.dumps({"type": "function", "function": told}, ensure_ascii=False, separators=(",", ":")))


# -- ways of choosing


def _outcomes(hands: Sequence[Hand], folder: Path, wanted: Sequence[str] = WAYS) -> Iterator[tuple[str, Outcome]]:
    def local() -> Embedder | None:
        return open_embedder("local", home=folder)

    choosers = ((MEANING, "vectors.db", local), (WORDS, "none.db", lambda: None))
    for name, file, opened in (each for each in choosers if each[0] in wanted):
        with closing(Chooser(folder / file, opened, timeout_s=PATIENCE_S)) as chooser:
            outcome = _asked(hands, partial(_ours, chooser))
            yield name, _scored(outcome, chooser, hands)
    if MEANING_ALONE in wanted:
        with closing(TextVectors(folder / "vectors.db", local, timeout_s=PATIENCE_S)) as vectors:
            yield MEANING_ALONE, _asked(hands, lambda hand: _by_meaning(vectors, hand))
    if PLAIN in wanted and (embedder := local()) is not None:
        with closing(embedder):
            yield PLAIN, _asked(hands, lambda hand: _plain(embedder, hand))
    if BM25 in wanted:
        yield BM25, _rank_bm25(hands, folder)


def _asked(hands: Sequence[Hand], opened: Callable[[Hand], Pick]) -> Outcome:
    outcome = Outcome()
    for hand in hands:
        pick, weights = opened(hand), {source.id: weight(source) for source in hand.sources}
        pick("Is this on?")  # opens what is opened once
        for message in hand.asked:
            began, computed = time.perf_counter(), time.process_time()
            picked = pick(message.text)
            outcome.seconds.append(time.perf_counter() - began)
            outcome.computed.append(time.process_time() - computed)
            outcome.add(message, picked, weights)
    return outcome


def _ours(chooser: Chooser, hand: Hand) -> Pick:
    def pick(message: str) -> list[SourceId]:
        choice = chooser.choose(message, hand.sources)
        assert not choice.note, choice.note
        return [each.source.id for each in choice.chosen]

    return pick


def _scored(outcome: Outcome, chooser: Chooser, hands: Sequence[Hand]) -> Outcome:
    for hand in hands:
        for message in hand.asked:
            outcome.note(message, chooser.scores(message.text, hand.sources)[0])
    return outcome


def _by_meaning(vectors: TextVectors, hand: Hand) -> Pick:
    candidates = CandidateCache().get(hand.sources)

    def pick(message: str) -> list[SourceId]:
        said = key_sentences(message)
        if not said or (near := vectors.compare(said, candidates.texts)).cosines is None:
            return []
        chunks = ChunkScores(candidates, [*said, message], [({}, 0.0)] * near.cosines.shape[1])
        chunks.score_by_words_and_meaning(near.cosines)
        scores: dict[SourceId, float] = {}
        for position in chunks.ranked(DEFAULT_LIMITS.top_k):
            scores.setdefault(chunks.source(position).id, chunks.scores[position])
        return _limited(
            list(scores), scores, DEFAULT_LIMITS.top_n, DEFAULT_LIMITS.min_score, DEFAULT_LIMITS.include_score
        )

    return pick


def _plain(embedder: Embedder, hand: Hand) -> Pick:
    """As one would write it in ten lines: each source one text, the message one vector."""
    rows = embedder.embed([_as_text(source) for source in hand.sources])
    ids = [source.id for source in hand.sources]

    def pick(message: str) -> list[SourceId]:
        near = (rows @ embedder.embed([message])[0]).tolist()
        best = sorted(range(len(ids)), key=lambda at: -near[at])[: DEFAULT_LIMITS.top_k]
        scores = {ids[at]: near[at] for at in best}
        return _limited(list(scores), scores, PLAIN_MOST, PLAIN_FLOOR, PLAIN_INCLUDE)

    return pick


def _limited(
    ranked: Sequence[SourceId], scores: dict[SourceId, float], most: int, floor: float, include: float
) -> list[SourceId]:
    return [id for place, id in enumerate(ranked) if scores[id] >= include or (place < most and scores[id] >= floor)]


def _as_text(source: Source) -> str:
    if isinstance(source, Tool):
        return f"{source.name}: {source.description}"
    return f"{source.name}: {source.description}\n{source.text}"


def _rank_bm25(hands: Sequence[Hand], folder: Path) -> Outcome:
    told = [
        {"texts": [_as_text(source) for source in hand.sources], "messages": [each.text for each in hand.asked]}
        for hand in hands
    ]
    path = folder / "hands.json"
    path.write_text(json.dumps(told), "utf-8")
    outcome = Outcome()
    for hand, answers in zip(hands, peers.ask("pick", path), strict=True):
        weights = {source.id: weight(source) for source in hand.sources}
        for message, (places, took) in zip(hand.asked, answers, strict=True):
            outcome.add(message, [hand.sources[place].id for place in places], weights)
            outcome.seconds.append(took)
    return outcome


# -- telling


def _row(size: int, name: str, outcome: Outcome, hands: Sequence[Hand]) -> list[str]:
    times = Times(tuple(outcome.seconds))
    computed = ms(Times(tuple(outcome.computed)).p95) if outcome.computed else ""
    every = sum(hand.tokens * len(hand.asked) for hand in hands) / len(times.seconds)
    sent = outcome.tokens / len(times.seconds)
    return [
        name,
        f"{size:,}",
        *map(ms, (times.p50, times.p95)),
        computed,
        f"{outcome.recall:.0%}",
        f"{outcome.chosen / max(1, outcome.asked):.1f}",
        f"{1 - outcome.wrong / max(1, outcome.chosen):.0%}",
        f"{outcome.for_nothing} of {len(outcome.found['nothing'])}",
        f"{sent:,.0f}",
        f"{1 - sent / every:.1%}",
        judged(times.p95, GOAL_S, "p95 ≤ 10 ms") if size == 500 and name == MEANING else "",
    ]


def _share(found: Sequence[int]) -> str:
    return f"{sum(found) / len(found):.0%} of {len(found)}" if found else ""


def _told(size: int, hands: Sequence[Hand]) -> str:
    each = f"{len(hands)} hands of about {size}" if len(hands) > 1 else f"{size:,} sources"
    asked = sum(len(hand.asked) for hand in hands)
    return f"{each}: {asked} messages; all of them sent would take {hands[0].tokens:,} tokens with every request"


def _show_scores(scored: dict[str, Scored]) -> None:
    rows = [[name, *(_share(each.get(tenth, [])) for tenth in range(1, 10))] for name, each in scored.items()]
    columns = [f"{tenth / 10:g}–{(tenth + 1) / 10:g}" for tenth in range(1, 10)]
    show("How often a source with such a score is right, among 500", ("", *columns), rows)


def _explained() -> list[str]:
    limits = (
        f"top_k {DEFAULT_LIMITS.top_k}, top_n {DEFAULT_LIMITS.top_n}, include_score {DEFAULT_LIMITS.include_score:g}"
    )
    return [
        "recall: messages for which the right source was chosen; chosen: how many were, for a message that needs one;",
        "fitting: those of them that are right, or do no harm; CPU: what of the time this process really computed;",
        "for nothing: messages that need no source, and got one; tokens: of what was chosen, over all messages",
        f"limits: {limits}, min_score {DEFAULT_LIMITS.min_score:g}",
        "paraphrase: hardly any of its words is in the source; long: the need is one sentence among five or six",
    ]
