"""What of a long conversation is in the window when a question about it comes: recall, beside peers that cut or sum up.

Through the real engine and store: every conversation is stored, compacted down to its last six turns, and each question
is planned for as if it were asked; a turn counts when it stands verbatim in the bytes that would be sent. Then the
search alone: how many of the right turns are among the first 5, 10 and 20, and how long it takes.
"""

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import recto
from bench import peers
from bench.figure import Figure, cost, share
from bench.locomo import Conversation, Question, conversations, files
from bench.table import show
from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.recall.message_index import IndexScope

WINDOWS = (2000, 4000, 8000)
LATEST = 6
DEPTHS = (5, 10, 20)
# A question that gathers so many turns is one of the hard ones.
MANY = 4
GOALS = {"both": (0.93, 0.965, 0.985), "words": (0.91, 0.935, 0.965)}
SEARCH_GOALS = {"both": ".82 of 10, .88 of 20, ≤ 10 ms", "words": "≤ 3 ms"}
SUMMARY = "Two friends tell each other about their lives, work, families and plans over several months."


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of evidence, question by question."""

    all: tuple[float, ...]
    hard: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.all)

    @property
    def of_hard(self) -> float:
        return statistics.fmean(self.hard) if self.hard else 0.0


def main(quick: bool) -> None:
    if not files():
        print("recall: LoCoMo is not there; BENCH_DATA names the folder that holds locomo/")
        return
    found = conversations()[: 1 if quick else None]
    _windows(found)
    _retrieval(found)


def small(home: Path) -> Iterator[Figure]:
    """A few questions about one conversation, beside FTS5."""
    if found := _few():
        ranked, seconds = measured_ranks(found, searching({}))
        yield share("recall: evidence among the first 10", shares_by_depth(found, ranked)[DEPTHS.index(10)])
        yield cost("recall: a search", seconds, "FTS5", _peer_ranks("fts5", found)[1])


def small_untimed(home: Path) -> Iterator[Figure]:
    if found := _few():
        yield share("recall: evidence in 4,000 tokens", _ours(found, 4000, {}).mean)


def _few() -> list[Conversation]:
    return [replace(each, questions=each.questions[:40]) for each in conversations()[:1]] if files() else []


# -- in the window


def _windows(found: Sequence[Conversation]) -> None:
    rows = [_peer_row(name, found) for name in ("trim_messages", "SummarizationMiddleware")]
    for label, settings in (
        ("Recto, words alone", {"search.embedder": "none"}),
        ("Recto, words and meaning", {}),
    ):
        goal = GOALS["words" if "search.embedder" in settings else "both"]
        shares = [_ours(found, window, settings) for window in WINDOWS]
        rows.append([label, *(f"{each.mean:.3f}" for each in shares), " / ".join(f"{each:g}" for each in goal)])
        rows.append([f"  questions with {MANY} or more", *(f"{each.of_hard:.3f}" for each in shares), ""])
    for strategy in ("summarize", "hybrid"):
        shares = [_ours(found, window, {"context.strategy": strategy}, as_it_comes=True) for window in WINDOWS]
        rows.append([f"Recto as it comes, {strategy}", *(f"{each.mean:.3f}" for each in shares), ""])
    asked = sum(len(each.questions) for each in found)
    show(
        f"Evidence turns verbatim in the window, {len(found)} conversations, {asked} questions",
        ["tokens", *(f"{window:,}" for window in WINDOWS), "goal"],
        rows,
        [
            f"last {LATEST} turns and a summary of a sentence always in; the rest is for what is recalled",
            "as it comes: default settings, what recall may take included; summaries are of the same one sentence",
        ],
    )


def _ours(found: Sequence[Conversation], window: int, settings: dict[str, Any], *, as_it_comes: bool = False) -> Shares:
    got: list[tuple[Question, float]] = []
    for each in found:
        with _desk(window, settings, as_it_comes=as_it_comes) as desk:
            talk = _told(desk, each)
            talk.compact()
            desk.engine.message_index.catch_up(vectors=True)
            texts = {turn.id: turn.text for turn in each.turns}
            for question in each.questions:
                sent = _sent(desk, talk, question.text)
                got.append((question, _share(question, {turn for turn, text in texts.items() if text in sent})))
    return _shares(got)


def _shares(got: Sequence[tuple[Question, float]]) -> Shares:
    hard = tuple(share for question, share in got if len(question.evidence) >= MANY)
    return Shares(tuple(share for _, share in got), hard)


def _share(question: Question, there: Container[str]) -> float:
    return sum(turn in there for turn in question.evidence) / len(question.evidence)


class _Home:
    """A desk on a home that is thrown away."""

    def __init__(self, window: int, settings: dict[str, Any]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="recall"))
        script = self.folder / "script.json"
        steps = [{"text": SUMMARY, "when": "summary"}, {"text": "I see."}]
        # the whole window is for the prompt, as the peers count it
        script.write_text(json.dumps({"limit": window + 1, "steps": steps}), "utf-8")
        given = {"system_prompt": "", "context.reserved_response_tokens": 1, **settings}
        self.desk = recto.open(home=self.folder / "home", model=f"scripted:{script}", settings=given)

    def __enter__(self) -> Desk:
        return self.desk

    def __exit__(self, *_: object) -> None:
        self.desk.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _desk(window: int, settings: dict[str, Any], *, as_it_comes: bool = False) -> _Home:
    # the summary and the tail as short as the peers' least: what is measured is what comes back
    alone = {
        "context.recent_messages_to_keep": LATEST + 1,
        "context.summary_tokens": 96,
        "context.recall_tokens": window,
        "context.low_water": 0.15,
        "tools.enabled": False,
    }
    return _Home(window, settings if as_it_comes else {**alone, **settings})


def _told(desk: Desk, conversation: Conversation) -> Talk:
    home = desk.store.tree.create(title=conversation.name)
    parent: str | None = None
    with desk.store.database.write():
        for turn in conversation.turns:
            at = turn.at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
            said = Message(new_id(), turn.role, (Text(turn.text),), parent=parent, created=at)  # type: ignore[arg-type]
            parent = desk.store.tree.append(home.id, said).message.id
    return desk.conversation(home.id)


def _sent(desk: Desk, talk: Talk, question: str) -> str:
    """All texts of the request that this question would be sent with."""
    turn = desk.run(desk.engine.draft(talk.session, question))
    body = json.loads(b"".join(piece.data for piece in turn.pieces()[0]))
    return "\n".join(_text(message["content"]) for message in body["messages"])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# -- peers


def _peer_row(name: str, found: Sequence[Conversation]) -> list[str]:
    out = []
    for window in WINDOWS:
        given = [
            {"messages": [{"role": turn.role, "content": turn.text} for turn in each.turns], "window": window}
            for each in found
        ]
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder) / "conversations.json"
            asked.write_text(json.dumps({"summary": SUMMARY, "conversations": given}), "utf-8")
            kept: list[list[str]] = peers.ask("recall", name, "exact", asked)
        got = []
        for each, texts in zip(found, kept, strict=True):
            sent = {turn.id for turn in each.turns if turn.text in texts}
            got += [(question, _share(question, sent)) for question in each.questions]
        out.append(f"{_shares(got).mean:.3f}")
    return [name, *out, ""]


# -- the search alone

Rank = Callable[[str], Sequence[str]]
"""The ids of turns for a question, the best first."""


def _retrieval(found: Sequence[Conversation]) -> None:
    rows = []
    for label, settings in (("Recto, words alone", {"search.embedder": "none"}), ("Recto, words and meaning", {})):
        ranked, seconds = measured_ranks(found, searching(settings))
        goal = SEARCH_GOALS["words" if settings else "both"]
        rows.append([label, *_shown(shares_by_depth(found, ranked)), f"{1000 * seconds:.1f}", goal])
    for name in ("fts5", "rank_bm25"):
        ranked, seconds = _peer_ranks(name, found)
        rows.append([name, *_shown(shares_by_depth(found, ranked)), f"{1000 * seconds:.1f}", ""])
    show("Turns found, search alone", ["among the first", *map(str, DEPTHS), "ms a question", "goal"], rows)


Ranked = Sequence[Sequence[Sequence[str]]]
"""By conversation and question."""


def _peer_ranks(name: str, found: Sequence[Conversation]) -> tuple[Ranked, float]:
    told = [
        {
            "turns": [[turn.id, turn.text] for turn in each.turns],
            "questions": [question.text for question in each.questions],
        }
        for each in found
    ]
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "conversations.json"
        asked.write_text(json.dumps(told), "utf-8")
        ranked, ms = peers.ask("retrieve", name, asked)
    return ranked, ms / 1000


def searching(settings: dict[str, Any]) -> Callable[[Conversation], tuple[_Home, Rank]]:
    def open_on(conversation: Conversation) -> tuple[_Home, Rank]:
        home = _Home(WINDOWS[-1], settings)
        desk = home.desk
        talk = _told(desk, conversation)
        archive, head = desk.engine.message_index, talk.session.head
        archive.catch_up(vectors=True)
        assert talk.id is not None
        assert head is not None
        trail, newest = desk.store.tree.trail(head), desk.store.tree.newest_number()
        scope = IndexScope(talk.id, trail, 1, len(conversation.turns), newest)
        names = {turn.text: turn.id for turn in conversation.turns}

        def rank(question: str) -> list[str]:
            hits, _ = archive.recall(question, scope, most=max(DEPTHS) * 2)
            return list(dict.fromkeys(names[hit.message.text] for hit in hits))

        rank("warm")
        return home, rank

    return open_on


def measured_ranks(
    found: Sequence[Conversation], open_on: Callable[[Conversation], tuple[_Home, Rank]]
) -> tuple[Ranked, float]:
    """What was found, and the median seconds of a question."""
    ranked: list[list[Sequence[str]]] = []
    times: list[float] = []
    for each in found:
        home, rank = open_on(each)
        with home:
            ranked.append([])
            for question in each.questions:
                started = time.perf_counter()
                ranked[-1].append(rank(question.text))
                times.append(time.perf_counter() - started)
    return ranked, statistics.median(times)


def _shown(shares: Iterable[float]) -> list[str]:
    return [f"{each:.3f}" for each in shares]


def shares_by_depth(found: Sequence[Conversation], ranked: Ranked) -> list[float]:
    asked = [question for each in found for question in each.questions]
    given = [ids for ranks in ranked for ids in ranks]
    return [
        statistics.fmean(_share(*pair) for pair in zip(asked, (ids[:depth] for ids in given), strict=True))
        for depth in DEPTHS
    ]
