"""What is remembered between conversations: 30 weeks of a user's facts, some of them changed later, in three languages.

For each fact a message comes that needs it, in other words than those it was told in. It counts when its value stands
in the bytes that would be sent, with at most 1,000 tokens of facts; an outdated value counts as wrong where the newer
statement is not beside it. Beside us mem0 and LangGraph's store, with the same vectors: what they find for the message,
as much as 1,000 tokens hold. Then what a chat with memory bills more than one without (as in bench/cache.py), what is
learned by itself from 2,000 messages of chatter, orders, questions, copied documents and rules, with the facts among
them, also if a model points to every sentence, and how long a recall takes among 100,000 facts.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bench import peers
from bench.cache import figures
from bench.corpus import Speaker
from bench.figure import Figure, cost, share, wrong
from bench.memory_texts import CHANGED, CHATTER, FACTS, NAMES, SURNAMES, THINGS, TOWNS, Planted, planted, told_by_user
from bench.prefix import Bill
from bench.replay import recorded, summaries
from bench.table import Times, judged, ms, show
from bench.wire import tokens
from recto.api.blocking import Desk, open_desk
from recto.memory.statements import learnable
from recto.search.embedder import LOCAL, open_embedder
from recto.store.fact import MemoryFact

WEEKS, MANY = 30, 100_000
MOST_TOKENS, FEW_TOKENS = 1000, 100
PEERS = ("mem0ai", "langgraph")
# How many facts a peer is asked for: more than the tokens hold.
ASKED_FOR = 60
# A chat of so many messages in a window of 32k, of which each fifth needs a fact.
WINDOW, TURNS, NEEDS_FACT, REPLY_CHARS = 32_768, 400, 5, 900
MORE_BILLED = 1.05
BEGIN = datetime(2026, 1, 5, 9)


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    facts = planted(7, 60 if quick else FACTS, 18 if quick else CHANGED)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        rows = []
        for name, embedder in (("words and meaning", LOCAL), ("words", "none")):
            result = measure(Path(folder) / name.replace(" ", "-"), facts, embedder)
            rows.append(_row(name, result))
        for name in PEERS:
            rows.append(_row(*theirs(Path(folder) / name, name, facts)))
        show(
            f"{len(facts)} facts of {WEEKS} weeks, {sum(bool(each.changed) for each in facts)} of them changed later",
            ("recall by", "in the window", "en", "de", "es", "in the first 100", "outdated alone", "tokens of facts"),
            rows,
            notes=(
                "needed facts; goals: ≥ .95 with at most 1,000 tokens; no outdated value without the newer statement",
                "the peers have our vectors, without their optional packages for words",
            ),
        )
        turns = TURNS // 4 if quick else TURNS
        bills = {name: billed(Path(folder) / name, facts, turns, has_memory=name == "on") for name in ("off", "on")}
        ratio = bills["on"].cost() / bills["off"].cost()
        show(
            f"Billed input of a chat of {turns} messages in a window of {WINDOW:,}, in million token equivalents",
            ("memory", "cost", "input", "read", "to off"),
            [
                [
                    name,
                    f"{bill.cost() / 1e6:.3f}",
                    f"{bill.input / 1e6:.1f}",
                    f"{bill.hit_rate:.1%}",
                    f"{bill.cost() / bills['off'].cost():.3f}×",
                ]
                for name, bill in bills.items()
            ],
            notes=(judged(ratio, MORE_BILLED, f"≤ {MORE_BILLED}×"),),
        )
        learned, junk, learned_count = learned_by_itself(FACTS, 2000)
        show(
            f"Learned by itself from {FACTS} facts among 2,000 other messages",
            ("facts learned", "junk among them", "learned in all"),
            [[f"{learned:.3f}", f"{junk:.3f}", str(learned_count)]],
            notes=("goal: junk ≤ .05",),
        )
        count = MANY // 10 if quick else MANY
        taken, worked = recall_times(Path(folder) / "many", count)
        show(
            "A recall among many facts",
            ("facts", "p50 ms", "p95 ms", "p95 ms of the processor"),
            [[f"{count:,}", ms(taken.p50), ms(taken.p95), ms(worked.p95)]],
            notes=("goal: p95 ≤ 10 ms; words alone, the question's vector is made with the recall of messages",),
        )


def _row(name: str, result: "Measured") -> list[str]:
    languages = [f"{result.of(language):.3f}" for language in ("en", "de", "es")]
    figures = (f"{result.first:.3f}", str(result.outdated), f"{result.tokens:.0f}")
    return [name, f"{result.share:.3f}", *languages, *figures]


def learned_by_itself(facts: int, chatter: int) -> tuple[float, float, int]:
    """The share of the facts that is learned, of what is learned the share that is junk, and how much is learned."""
    pick, own = random.Random(5), told_by_user(facts)
    said = [*own, *(pick.choice(CHATTER).format(n=pick.randrange(2, 400)) for _ in range(chatter))]
    pick.shuffle(said)
    found = [statement for message in said for statement in learnable(message)]
    known = [statement for statement in found if any(statement.lower() in each.lower() for each in own)]
    return len(set(known)) / len(own), 1 - len(known) / max(1, len(found)), len(found)


def small_untimed(home: Path) -> Iterator[Figure]:
    learned, junk, _ = learned_by_itself(FACTS, 2000)
    yield share("memory: facts learned from what is said", learned)
    yield wrong("memory: junk among learned facts", junk, "share")
    result = measure(home / "planted", planted(7, 36, 11), "none")
    yield share("memory: needed facts in the window", result.share)
    yield wrong("memory: outdated facts alone", result.outdated)


def small(home: Path) -> Iterator[Figure]:
    times, _ = recall_times(home / "many", 2000)
    yield cost("memory: a recall among 2,000 facts", times.p50)


@dataclass(frozen=True, slots=True)
class Measured:
    found: tuple[tuple[str, bool], ...]
    """By language."""
    first: float
    """The share that is among the first few tokens of facts."""
    outdated: int
    tokens: float

    @property
    def share(self) -> float:
        return sum(is_in for _, is_in in self.found) / len(self.found)

    def of(self, language: str) -> float:
        own = [is_in for each, is_in in self.found if each == language]
        return sum(own) / len(own) if own else 0.0


def measure(home: Path, facts: Sequence[Planted], embedder: str) -> Measured:
    home.mkdir(parents=True)
    script = home / "script.json"
    script.write_text('{"limit": 32000, "steps": [{"text": "Fine."}]}')
    settings = {"search.embedder": embedder, "search.timeout_s": 60}
    with open_desk(home=home, project=home, model=f"scripted:{script}", settings=settings) as desk:
        learn(desk, facts)
        desk.facts.index()
        found, first, outdated, used = list[tuple[str, bool]](), 0, 0, 0
        for each in facts:
            reply = desk.conversation().ask(each.question)
            body = desk.rebuild(reply.request_id).decode()
            told = body.rpartition("Remembered from")[2] if "Remembered from" in body else ""
            found.append((each.language, each.current in told))
            first += each.current in "".join(held(told.split("\\n")[1:], FEW_TOKENS))
            outdated += bool(each.changed) and each.value in told and each.new_value not in told
            used += sum(section.tokens for section in reply.window.sections if section.name == "memory")
    return Measured(tuple(found), first / len(facts), outdated, used / len(facts))


def held(lines: Sequence[str], most: int) -> list[str]:
    """The first lines, as many as so many tokens hold."""
    sizes = [tokens(f"{line}\n") for line in lines]
    return [line for place, line in enumerate(lines) if sum(sizes[: place + 1]) <= most]


def learn(desk: Desk, facts: Sequence[Planted]) -> None:
    for when, text in told_in_order(facts):
        desk.facts.learn(text, created=f"{when.isoformat()}Z")


def told_in_order(facts: Sequence[Planted]) -> list[tuple[datetime, str]]:
    """What was told in the first weeks, then what changed since, each on its day."""
    step = timedelta(weeks=WEEKS) / (2 * len(facts))
    first = [(BEGIN + step * place, each.told) for place, each in enumerate(facts)]
    later = [(BEGIN + step * (len(facts) + place), each.changed) for place, each in enumerate(facts) if each.changed]
    return [*first, *later]


def theirs(folder: Path, name: str, facts: Sequence[Planted]) -> tuple[str, Measured]:
    """The same of a peer: the texts that it finds, as many as the tokens hold."""
    folder.mkdir(parents=True)
    told, asked = [text for _, text in told_in_order(facts)], [each.question for each in facts]
    embedder = open_embedder(LOCAL, home=folder)
    assert embedder is not None
    texts = list(dict.fromkeys((*told, *asked)))
    vectors = dict(zip(texts, embedder.embed(texts).tolist(), strict=True))
    embedder.close()
    task = folder / "task.json"
    task.write_text(json.dumps({"told": told, "asked": asked, "vectors": vectors, "most": ASKED_FOR}), "utf-8")
    answer = peers.ask("memory", name, task, folder)
    found, first, outdated, used = list[tuple[str, bool]](), 0, 0, 0
    for each, texts in zip(facts, answer["answers"], strict=True):
        kept = "\n".join(lines := held([f"- {text}" for text in texts], MOST_TOKENS))
        found.append((each.language, each.current in kept))
        first += each.current in "".join(held(lines, FEW_TOKENS))
        outdated += bool(each.changed) and each.value in kept and each.new_value not in kept
        used += tokens(kept)
    return str(answer["version"]), Measured(tuple(found), first / len(facts), outdated, used / len(facts))


def billed(home: Path, facts: Sequence[Planted], turns: int, *, has_memory: bool) -> Bill:
    """All requests of one long chat, summaries too. With memory there are facts, and memory files of a usual length."""
    home.mkdir(parents=True)
    (home / "RECTO.md").write_text(Speaker(1).text(2_000))
    (home / "memory.md").write_text(Speaker(2).text(600))
    script, used = home / "script.json", {"usage": {"input": 1, "output": 1}}
    says, asks = Speaker(3), random.Random(3)
    replies = [{"text": says.text(REPLY_CHARS)} | used for _ in range(turns)]
    script.write_text(json.dumps({"limit": WINDOW, "steps": [*replies, *summaries(Speaker(4).text(3_000))]}))
    settings = {"search.embedder": "none", "context.memory_integration": has_memory}
    with open_desk(home=home, project=home, model=f"scripted:{script}", settings=settings) as desk:
        learn(desk, facts)
        talk = desk.conversation()
        for number in range(turns):
            talk.ask(asks.choice(facts).question if number % NEEDS_FACT == 0 else says.message())
        return figures([recorded(desk, talk.id)], WINDOW).bill


def recall_times(home: Path, count: int) -> tuple[Times, Times]:
    """By the clock, and of the processor: others may be at work on the machine."""
    home.mkdir(parents=True)
    pick, questions = random.Random(3), planted(11, 100, 0)
    with open_desk(home=home, project=home, model="scripted:none", settings={"search.embedder": "none"}) as desk:
        with desk.store.database.write():
            for place in range(count):
                subject, thing = f"{pick.choice(NAMES)}{place % 977} {pick.choice(SURNAMES)}", pick.choice(THINGS)
                text = f"{subject} keeps the {thing} in {pick.choice(TOWNS)} since {1950 + place % 70}."
                desk.store.facts.add(MemoryFact(0, text))
            for each in questions:
                desk.store.facts.add(MemoryFact(0, each.told))
        desk.facts.index()
        desk.facts.relevant("Where is the boat?")
        taken, worked = [], []
        for each in questions:
            started, before = time.perf_counter(), time.process_time()
            desk.facts.relevant(each.question)
            worked.append(time.process_time() - before)
            taken.append(time.perf_counter() - started)
    return Times(tuple(taken)), Times(tuple(worked))
