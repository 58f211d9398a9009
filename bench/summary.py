"""What ten compactions keep: planted statements and the state of agent runs, in summary and ledger or one recall away.

Forty conversations of eight kinds (`bench.planted`) through the real engine and store, at windows of 4k and 8k; beside
us SummarizationMiddleware with the same lossy model, which gets all of the room. Then agent runs, and the time that
the summary and ledger of 100,000 tokens take. `--seed` makes other conversations, `--sample` prints lines to judge.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from bench import peers, planted
from bench.agent_formats import FORMATS, FormatAgent
from bench.agent_work import Agent, Named, State, named, state_of
from bench.compactions import Compacted, cap, compacted, in_parallel, run_of, text_of
from bench.figure import Figure, cost, share, wrong
from bench.levels import show_levels
from bench.long_message import show_condensed
from bench.lossy import Lossy, unmarked
from bench.planted import KINDS, SORTS, Statement, is_outdated, is_told
from bench.runs import Run, long_run, records
from bench.table import judged, show
from bench.wire import Limits, Wire, tokens
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.summary.extractive_summary import Extraction, PlainMessage
from recto.summary.verification import CoveredMessages

CHATS, COMPACTIONS = 40, 10
# For each window how long a conversation must be for ten compactions.
WINDOWS = {4_096: 24_000, 8_192: 44_000}
GOALS = {4_096: 0.80, 8_192: 0.90}
WEIGHTY, GOAL_WEIGHTY = SORTS[:4], 0.95
GOAL_RECALLED, GOAL_MARKED, GOAL_RUNS, GOAL_SPEED_S = 0.99, 0.01, 0.95, 1.0
SENTENCES, LOSSY = "recto, sentences", "recto, lossy model"
PEER, PEER_NAME = "SummarizationMiddleware, lossy model", "SummarizationMiddleware, full input"
RUNS, RUN_WINDOW, RUN_SIZE = 10, 8_192, 42_000
SAMPLE, SPEED_TOKENS = 200, 100_000
MARK = "[unverified]"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one statement."""

    kind: str
    sort: str
    told: bool
    recalled: bool
    outdated: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """Lines of a model's summaries, by whether they are true and marked."""

    invented: int = 0
    unmarked: int = 0
    true: int = 0
    true_marked: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one conversation after its last compaction."""

    findings: tuple[Finding, ...]
    compactions: int
    room_used: float
    marks: Marks = Marks()
    summary: str = ""
    ledger: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A conversation to be played: its kind, what it is made of, and who writes its summaries."""

    kind: str
    seed: int
    window: int
    lossy: bool
    compactions: int = COMPACTIONS
    size: int = 0

    def chat(self) -> planted.Chat:
        return planted.chat(self.kind, self.seed, self.size or WINDOWS[self.window])

    def writer(self) -> Lossy | None:
        return Lossy(self.seed) if self.lossy else None


def main(quick: bool, seed: int = 0, *, sample: bool = False) -> None:
    jobs = [Job(kind, each, 4_096, lossy=False) for kind, each in _chosen(seed, quick)]
    if sample:
        _show_sample(in_parallel(_judged, jobs), seed)
        return
    peers.install()
    for window in WINDOWS:
        ours = [replace(job, window=window) for job in jobs]
        rows = {
            SENTENCES: in_parallel(_judged, ours),
            LOSSY: in_parallel(_judged, [replace(job, lossy=True) for job in ours]),
            PEER: _theirs(ours),
        }
        _show(window, rows, seed)
    _show_runs(quick, seed)
    show_levels(quick, seed)
    show_condensed([(job.kind, job.seed) for job in jobs])
    _show_speed(seed)


def small_untimed(home: Path) -> Iterator[Figure]:
    """Two shorter conversations, one of them summed up by a lossy model."""
    jobs = [Job("planning", 0, 4_096, lossy=False, size=6_000), Job("coding", 0, 4_096, lossy=True, size=6_000)]
    found = [_judge(home / job.kind, job) for job in jobs]
    findings = [each for verdict in found for each in verdict.findings]
    yield share("summary: in summary and ledger", _share(findings, lambda each: each.told))
    yield share("summary: with one recall", _share(findings, lambda each: each.told or each.recalled))
    yield wrong("summary: outdated", sum(each.outdated for each in findings))
    yield wrong("summary: made up, unmarked", sum(verdict.marks.unmarked for verdict in found))


def small(home: Path) -> Iterator[Figure]:
    _seconds(SPEED_TOKENS // 20, 1)  # a process compiles its patterns once
    yield cost("summary: extractive, with its ledger", _seconds(SPEED_TOKENS // 5, 0))


def _chosen(seed: int, quick: bool) -> Iterator[tuple[str, int]]:
    """Kinds in turn; every conversation has a number of its own."""
    for number in range(len(KINDS) if quick else CHATS):
        yield KINDS[number % len(KINDS)], seed * CHATS + number


# -- ours


def _judged(job: Job) -> Verdict:
    peers.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER, ignore_cleanup_errors=True) as folder:
        return _judge(Path(folder) / "home", job)


def _judge(home: Path, job: Job) -> Verdict:
    chat, writer = job.chat(), job.writer()
    with compacted(home, run_of(chat.turns), job.window, job.compactions, writer) as found:
        said = "\n".join(map(text_of, found.covered()))
        wanted = [each for each in chat.statements if is_told(each, said)]
        verdict = _verdict(found, writer)
        if not all(is_told(each, found.sent) for each in wanted):
            found.index()
        findings = [_finding(job.kind, each, found.sent, found.recalled) for each in wanted]
        return replace(verdict, findings=tuple(findings))


def _finding(kind: str, statement: Statement, text: str, recall: Callable[[str], str]) -> Finding:
    told = is_told(statement, text)
    recalled = not told and is_told(statement, recall(statement.question))
    return Finding(kind, statement.sort, told, recalled, is_outdated(statement, text))


def _verdict(found: Compacted, writer: Lossy | None) -> Verdict:
    last = found.blocks[-1]
    marks = _marks([block.summary for block in found.blocks], writer.invented) if writer else Marks()
    return Verdict((), last.compaction_number, found.room_used, marks, last.summary, tuple(last.ledger))


def _marks(summaries: Sequence[str], invented: list[str]) -> Marks:
    """In every summary of a conversation, since what is marked once may be dropped later."""
    lines = [line for summary in summaries for line in summary.splitlines()]
    true = [line for line in lines if not any(value in line for value in invented)]
    missed = sum(len(unmarked(summary, invented)) for summary in summaries)
    return Marks(len(lines) - len(true), missed, len(true), sum(MARK in line for line in true))


# -- theirs


def _theirs(jobs: Sequence[Job]) -> list[Verdict]:
    window = jobs[0].window
    limits = Limits(window - 512, int(window * 0.85), int((window - 512) * 0.5) - cap(window))
    chats = [job.chat() for job in jobs]
    runs = [run_of(chat.turns).wire() for chat in chats]
    task = {"limits": limits.to_json(), "runs": runs, "cap": cap(window), "least": COMPACTIONS}
    task["seeds"] = [job.seed for job in jobs]
    with tempfile.TemporaryDirectory(dir=peers.FOLDER, ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "task.json"
        path.write_text(json.dumps(task), "utf-8")
        answers = peers.ask("summary", PEER_NAME, path)["runs"]
    return [_their_verdict(*each, window) for each in zip(chats, runs, answers, strict=True)]


def _their_verdict(chat: planted.Chat, run: list[Wire], answer: dict[str, Any], window: int) -> Verdict:
    summary: str = answer["summaries"][-1]
    said = "\n".join(str(message.get("content") or "") for message in run[: answer["covered"]])
    wanted = [each for each in chat.statements if is_told(each, said)]
    findings = tuple(_finding(chat.kind, each, summary, lambda _: "") for each in wanted)
    marks = _marks(answer["summaries"], answer["invented"])
    return Verdict(findings, len(answer["summaries"]), tokens(summary) / cap(window), marks)


# -- agent runs


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run: one of ours, a recorded one, or one in another format."""

    number: int
    source: str
    lossy: bool = False

    def run(self) -> tuple[Run, Callable[[int], State]]:
        """And what must be known after so many of its messages."""
        if self.source in FORMATS:
            agent = FormatAgent(self.source, self.number)
            return agent.run(RUN_SIZE), agent.state
        is_recorded = self.source == "recorded"
        run = long_run(records(), self.number, RUN_SIZE) if is_recorded else Agent(self.number).run(RUN_SIZE)
        return run, lambda covered: state_of(run.wire()[1 : covered + 1])


def _named(job: RunJob) -> Named:
    peers.FOLDER.mkdir(exist_ok=True)
    run, state = job.run()
    writer = Lossy(job.number) if job.lossy else None
    with (
        tempfile.TemporaryDirectory(dir=peers.FOLDER, ignore_cleanup_errors=True) as folder,
        compacted(Path(folder) / "home", run, RUN_WINDOW, COMPACTIONS, writer) as found,
    ):
        return named(state(len(found.covered())), found.sent, found.lifted)


def _show_runs(quick: bool, seed: int) -> None:
    number = 2 if quick else RUNS
    made = [RunJob(seed * RUNS + each, "made up") for each in range(number)]
    recorded = [RunJob(each, "recorded") for each in range(min(number, len(records())))]
    others = [RunJob(seed * RUNS + each, format) for format in FORMATS for each in range(1 if quick else 2)]
    rows, shares = [], []
    for name, jobs in (("made up", made), ("recorded", recorded), ("other formats", others)):
        for who, lossy in ((SENTENCES, False), (LOSSY, True)):
            if jobs:
                found = sum(in_parallel(_named, [replace(job, lossy=lossy) for job in jobs]), Named())
                shares.append(found.share)
                rows.append([f"{name}, {who}", f"{len(jobs)}", *_named_row(found)])
    show(
        f"Agent runs after {COMPACTIONS} compactions at {RUN_WINDOW:,}: what the last summary and ledger name",
        ("", "runs", "latest task", "changed files", "last outcomes", "all"),
        rows,
        notes=(
            "latest task: in the summary, or its message is still sent word for word",
            f"goal: {judged(-min(shares), -GOAL_RUNS, f'≥ {GOAL_RUNS:.0%}')}",
        ),
    )


def _named_row(found: Named) -> list[str]:
    return [
        f"{found.task_named / found.tasks:.0%}",
        f"{found.files_named / found.files:.0%}",
        f"{found.outcomes_named / found.outcomes:.0%}",
        f"{found.share:.1%}",
    ]


# -- speed


def _seconds(size: int, seed: int) -> float:
    """Of the processor, for a first summary and ledger."""
    chats = [planted.chat(kind, seed, size // len(KINDS)) for kind in KINDS]
    said = [turn for chat in chats for turn in chat.turns]
    messages = [Message(new_id(), _ROLES[turn.role], (Text(turn.text),)) for turn in said]
    room = cap(8_192)
    started = time.process_time()
    Extraction([PlainMessage(_ROLES[turn.role], turn.text) for turn in said], tokens).within(room)
    covered = CoveredMessages()
    covered.add(messages)
    _ = covered.statements
    return time.process_time() - started


def _show_speed(seed: int) -> None:
    # other texts each time: sentences that were seen before are found in caches
    seconds = min(_seconds(SPEED_TOKENS, seed + at) for at in range(3))
    goal = judged(seconds, GOAL_SPEED_S, f"≤ {GOAL_SPEED_S:.0f} s")
    title = f"Extractive summary and the facts of its ledger, {SPEED_TOKENS:,} tokens"
    show(title, ("", "s"), [["recto", f"{seconds:.2f}"]], notes=(f"goal: {goal}",))


# -- the tables


def _share(findings: Iterable[Finding], is_so: Callable[[Finding], bool]) -> float:
    found = [is_so(each) for each in findings]
    return sum(found) / len(found) if found else 1.0


def _show(window: int, rows: dict[str, list[Verdict]], seed: int) -> None:
    show(
        f"Planted statements after {COMPACTIONS} compactions at {window:,}: {len(rows[SENTENCES])} chats, seed {seed}",
        ("", "statements", "cuts", "told", "+ recall", "outdated", "room used", "made up", "unmarked", "true marked"),
        [_row(name, verdicts) for name, verdicts in rows.items()],
        notes=(
            "told: in summary and ledger; + recall: or in what one recall brings for a question about it",
            "outdated: corrected values of which only the former one is told; made up: in all summaries of the chats",
        ),
    )
    findings = {name: [each for verdict in found for each in verdict.findings] for name, found in rows.items()}
    parts = [*((sort, "sort") for sort in SORTS), *((kind, "kind") for kind in KINDS)]
    chosen = {
        name: {who: [each for each in found if getattr(each, what) == name] for who, found in findings.items()}
        for name, what in parts
    }
    show(
        f"The same by sort of statement and kind of conversation, at {window:,}",
        (
            "",
            *(f"{name.split(',')[-1].strip()}: {what}" for name in (SENTENCES, LOSSY) for what in ("told", "+ recall")),
            "peer: told",
        ),
        [_part_row(name, found) for name, found in chosen.items()],
        notes=(f"goals: {'; '.join(_goals(window, rows, findings))}",),
    )


def _goals(window: int, rows: dict[str, list[Verdict]], findings: dict[str, list[Finding]]) -> list[str]:
    ours, both = findings[SENTENCES], [*findings[SENTENCES], *findings[LOSSY]]
    told = _share(ours, lambda each: each.told)
    weighty = min(_share([each for each in ours if each.sort == sort], lambda each: each.told) for sort in WEIGHTY)
    recalled = _share(both, lambda each: each.told or each.recalled)
    marks = [each.marks for each in rows[LOSSY]]
    marked = sum(each.true_marked for each in marks) / max(1, sum(each.true for each in marks))
    return [
        judged(-told, -GOALS[window], f"≥ {GOALS[window]:.0%} told"),
        judged(-weighty, -GOAL_WEIGHTY, f"≥ {GOAL_WEIGHTY:.0%} of {', '.join(WEIGHTY)}"),
        judged(-recalled, -GOAL_RECALLED, f"≥ {GOAL_RECALLED:.0%} with one recall"),
        judged(sum(each.outdated for each in both), 0, "nothing outdated"),
        judged(sum(each.unmarked for each in marks), 0, "nothing made up unmarked"),
        judged(marked, GOAL_MARKED, f"≤ {GOAL_MARKED:.0%} true lines marked"),
    ]


def _row(name: str, verdicts: Sequence[Verdict]) -> list[str]:
    findings = [each for verdict in verdicts for each in verdict.findings]
    marks = [each.marks for each in verdicts]
    true = sum(each.true for each in marks)
    return [
        name,
        f"{len(findings)}",
        f"{sum(each.compactions for each in verdicts) / len(verdicts):.1f}",
        f"{_share(findings, lambda each: each.told):.1%}",
        "–" if name == PEER else f"{_share(findings, lambda each: each.told or each.recalled):.1%}",
        f"{sum(each.outdated for each in findings)}",
        f"{sum(each.room_used for each in verdicts) / len(verdicts):.0%}",
        f"{sum(each.invented for each in marks)}",
        f"{sum(each.unmarked for each in marks)}",
        f"{sum(each.true_marked for each in marks) / true:.1%}" if true else "–",
    ]


def _part_row(name: str, findings: dict[str, list[Finding]]) -> list[str]:
    row = [name]
    for who in (SENTENCES, LOSSY):
        row.append(f"{_share(findings[who], lambda each: each.told):.0%}")
        row.append(f"{_share(findings[who], lambda each: each.told or each.recalled):.0%}")
    return [*row, f"{_share(findings[PEER], lambda each: each.told):.0%}"]


def _show_sample(verdicts: Sequence[Verdict], seed: int) -> None:
    """Lines to be judged by hand, by one who did not write them: is each worth its place?"""
    random = Random(seed)
    for name, lines in (
        ("ledger", [line for verdict in verdicts for line in verdict.ledger]),
        ("summary", [line for verdict in verdicts for line in verdict.summary.splitlines() if line.strip()]),
    ):
        print(f"== {name}: {min(SAMPLE, len(lines))} of {len(lines)} lines, seed {seed}\n")
        print("\n".join(random.sample(lines, min(SAMPLE, len(lines)))), end="\n\n")
