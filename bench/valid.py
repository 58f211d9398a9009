"""Random conversations that do not fit, with tool calls: would what is sent be accepted, and does it hold the question?

Counted in conversations: results without their call, calls without their result, the user's last message lost, more
than the budget by exact count, crashes. Ours are the bodies that were really sent, in every round. Goal: none.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from msgspec import structs

from bench import corpus, peers
from bench.cases import TOOL, Case, Read, Said, cases
from bench.figure import Figure, wrong
from bench.judge import Verdict, judge, unpaired
from bench.table import judged, show
from bench.turn import apart
from bench.wire import FRAME, Limits, Wire, tokens, weights
from recto.api.blocking import Desk, open_desk
from recto.base.ids import new_id
from recto.chat.blocks import Block, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.errors import RectoError
from recto.settings.settings import SYSTEM_PROMPT
from recto.store.store import Store

CASES, QUICK_CASES = 1_000, 100
WINDOW = 4_096
RESERVE = 512
LIMITS = Limits(most=WINDOW - RESERVE, trigger=WINDOW - RESERVE, keep=(WINDOW - RESERVE) // 2)
SUMMARY = corpus.Speaker(12).text(500)
PEERS = (
    ("trim_messages, bare", "approximate"),
    ("trim_messages", "approximate"),
    ("trim_messages", "exact"),
    ("SummarizationMiddleware", "approximate"),
    ("SummarizationMiddleware", "exact"),
    ("ContextEditingMiddleware", "approximate"),
    ("langmem", "approximate"),
    ("langmem", "exact"),
    ("harness, sliding", "approximate"),
    ("harness, sliding", "exact"),
    ("harness, tiered", "approximate"),
    ("harness, tiered", "exact"),
)
# The default on all of them, the others on a part.
OURS = {"summarize": 1.0, "hybrid": 0.25, "discard": 0.25}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one conversation: the verdict on what was sent for it, or the error that came instead."""

    verdict: Verdict | None
    error: str = ""
    summary_over: bool = False
    """A request for a summary was itself more than the window holds."""


def main(quick: bool) -> None:
    peers.install()
    given = list(cases(QUICK_CASES if quick else CASES, WINDOW))
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        path = _task(Path(folder), given)
        with ThreadPoolExecutor(2) as pool:  # nothing is timed here
            ours = pool.map(
                lambda strategy: apart(_ours, Path(folder) / strategy, strategy, _part(given, strategy)), OURS
            )
            theirs = pool.map(lambda peer: _peer(path, peer, given), PEERS)
            _show(given, dict(zip(OURS, ours, strict=True)), dict(zip(PEERS, theirs, strict=True)))


def small_untimed(home: Path) -> Iterator[Figure]:
    given = list(cases(12, WINDOW))
    outcomes = _ours(home / "ours", "summarize", given)
    yield wrong(f"valid: wrong of {len(given)}", sum(map(_is_bad, outcomes)))


# -- ours


def _part(given: Sequence[Case], strategy: str) -> Sequence[Case]:
    return given[: int(len(given) * OURS[strategy])]


def _ours(home: Path, strategy: str, given: Sequence[Case]) -> list[Outcome]:
    home.mkdir()
    return [_asked(home, strategy, case) for case in given]


def _asked(home: Path, strategy: str, case: Case) -> Outcome:
    """A desk of its own for every conversation, with the documents that its model reads."""
    folder = home / str(case.number)
    folder.mkdir()
    for read in (read for reads in case.rounds for read in reads):
        (folder / read.path).write_text(read.text or "", "utf-8")
    settings = {"context.strategy": strategy, "context.reserved_response_tokens": RESERVE}
    with open_desk(home=home, project=folder, vault=folder, model=_script(folder, case), settings=settings) as desk:
        conversation = desk.store.tree.create().id
        _import(desk.store, conversation, case.history)
        error = ""
        try:
            desk.conversation(conversation).ask(case.question)
        except RectoError as why:
            error = f"{type(why).__name__}: {why.message}"
        return _judged(desk, conversation, case, error)


def _script(folder: Path, case: Case) -> str:
    """The rounds of calls one after the other, then an answer; usage is given, for the script would count it else."""
    used: dict[str, Any] = {"usage": {"input": 1, "output": 1}}
    steps = [used | {"tool_calls": [_called(read) for read in reads]} for reads in case.rounds]
    steps += [used | {"text": "That is what the notes say."}, used | {"text": SUMMARY, "when": "summary"}]
    path = folder / "script.json"
    path.write_text(json.dumps({"limit": WINDOW, "steps": steps}), "utf-8")
    return f"scripted:{path}"


def _called(read: Read) -> dict[str, Any]:
    return {"id": read.id, "name": TOOL, "arguments": {"path": read.path}}


def _import(store: Store, conversation: str, history: Sequence[Said]) -> None:
    parent: str | None = None
    with store.database.write():  # one commit for all
        for message in (message for said in history for message in _messages(said)):
            parent = store.tree.append(conversation, structs.replace(message, parent=parent)).message.id


def _messages(said: Said) -> Iterator[Message]:
    text: tuple[Block, ...] = (Text(said.text),) if said.text else ()
    calls = tuple(ToolCall(read.id, TOOL, json.dumps({"path": read.path})) for read in said.reads)
    yield Message(new_id(), "assistant" if said.role == "assistant" else "user", text + calls)
    results = [ToolResult(read.id, TOOL, read.result) for read in said.reads if read.result is not None]
    if results:
        yield Message(new_id(), "tool", tuple(results), context_type="tool_output")


def _judged(desk: Desk, conversation: str, case: Case, error: str) -> Outcome:
    verdicts, summary_over = [], False
    for id in desk.store.records.ids(conversation):
        sent = desk.rebuild(id)
        body = json.loads(sent)
        tools = _tool_tokens(sent, body)
        if desk.record(id).purpose == "reply":
            verdicts.append(judge(body["messages"], case.question, LIMITS.most, tools))
        else:
            summary_over = summary_over or weights(body["messages"]) + tools > WINDOW
    return Outcome(reduce(or_, verdicts) if verdicts else None, error, summary_over)


def _tool_tokens(sent: bytes, body: dict[str, Any]) -> int:
    """Of the tools as they stand in the bytes that were sent."""
    written = [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in body.get("tools", ())]
    assert all(tool.encode() in sent for tool in written), "tools are sent in another form than they are counted here"
    return sum(map(tokens, written))


# -- theirs


def _task(folder: Path, given: Sequence[Case]) -> Path:
    conversations = [case.wire(SYSTEM_PROMPT) for case in given]
    limits = replace(LIMITS, most=LIMITS.most - FRAME)  # what primes the reply is no message that they could count
    path = folder / "conversations.json"
    path.write_text(
        json.dumps({"limits": limits.to_json(), "summary": SUMMARY, "conversations": conversations}), "utf-8"
    )
    return path


def _peer(path: Path, peer: tuple[str, str], given: Sequence[Case]) -> tuple[list[Outcome], str]:
    out = path.with_name(f"{', '.join(peer)}.jsonl")
    known = peers.ask("valid", *peer, path, out)
    with out.open(encoding="utf-8") as lines:
        outcomes = [_outcome(json.loads(line), case) for line, case in zip(lines, given, strict=True)]
    return outcomes, known["version"]


def _outcome(found: dict[str, Any], case: Case) -> Outcome:
    if "error" in found:
        return Outcome(None, found["error"])
    asked: list[list[Wire]] = found["asked"]
    over = any(weights(messages) > WINDOW for messages in asked)
    return Outcome(judge(found["sent"], case.question, LIMITS.most), summary_over=over)


# -- the table


def _show(
    given: Sequence[Case],
    ours: dict[str, list[Outcome]],
    theirs: dict[tuple[str, str], tuple[list[Outcome], str]],
) -> None:
    named = {f"recto, {strategy}": outcomes for strategy, outcomes in ours.items()}
    named |= {", ".join(peer): outcomes for peer, (outcomes, _) in theirs.items()}
    rows = [_row(name, outcomes) for name, outcomes in named.items()]
    bad = sum(_is_bad(outcome) for outcomes in ours.values() for outcome in outcomes)
    missing = sum(unpaired(case.wire(""))[1] > 0 for case in given)
    in_loop = sum(bool(case.rounds) for case in given)
    show(
        f"{len(given):,} conversations over a budget of {LIMITS.most:,} tokens: how many of them would go wrong",
        ("", "of", "loose results", "open calls", "message lost", "over budget", "most", "summary over", "crashed"),
        rows,
        notes=(
            f"recto: goal {judged(bad, 0, 'none of all this')}",
            f"{in_loop} end inside a tool loop, {missing} come with a call whose result is missing",
            "most: the largest request as a multiple of the budget",
            f"summary over: a request for a summary was itself more than the window of {WINDOW:,}",
            *_errors(named),
            ", ".join(sorted({version for _, version in theirs.values()})),
        ),
    )


def _is_bad(outcome: Outcome) -> bool:
    wrong = outcome.verdict
    if wrong is None or outcome.error or outcome.summary_over:
        return True
    return bool(wrong.loose_results or wrong.open_calls or wrong.lost or wrong.over > 1)


def _row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    found = [outcome.verdict for outcome in outcomes if outcome.verdict]
    counts = (
        sum(verdict.loose_results > 0 for verdict in found),
        sum(verdict.open_calls > 0 for verdict in found),
        sum(verdict.lost for verdict in found),
        sum(verdict.over > 1 for verdict in found),
    )
    most = f"{max(verdict.over for verdict in found):.2f}×" if found else "–"
    ends = (sum(outcome.summary_over for outcome in outcomes), sum(bool(outcome.error) for outcome in outcomes))
    return [name, f"{len(outcomes):,}", *map(str, counts), most, *map(str, ends)]


def _errors(named: dict[str, list[Outcome]]) -> Iterator[str]:
    """The commonest error of each, by its beginning: figures in it differ."""
    for name, outcomes in named.items():
        for error, count in Counter(each.error[:50] for each in outcomes if each.error).most_common(1):
            yield f"{name}: {count}× {error}…"
