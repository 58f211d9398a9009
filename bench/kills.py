"""Kills a process with SIGKILL at random points and looks for what was shown and is gone.

Each point is a process of its own over a home of its own, killed at a random moment after its first event: while it
streams, calls tools, compacts, migrates an old store, renames a note or builds its index. Goal: no message that was
shown is lost, every store checks, and what was on the screen for more than 100 ms is there.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import alembic.command  # noqa: F401  imported before forking, or the migration would mostly be imports

from bench import corpus, peers
from bench.figure import Figure, wrong
from bench.notes import write_notes
from bench.processes import Tell, Told, forked, killed
from bench.table import show
from bench.turn import import_history
from recto.api.blocking import Desk, open_desk
from recto.base.locations import STORE_FILE
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.events import Appended, ContextCompacted, Sent, SummaryRequested, TextDelta, ToolFinished
from recto.store.check import check_store
from recto.store.migrations import REVISIONS
from recto.store.store import Store
from recto.vault.vault import Vault

POINTS, QUICK_POINTS = 100, 30
SHOWN_S = 0.1
OLD_MESSAGES, INDEXED, LINKING = 3_000, 400, 40
USAGE = {"input": 100, "output": 24}
SETTINGS = {"search.embedder": "none", "references.gists": False}
REPLY = " ".join(f"word{number}" for number in range(60))
NAMES = ("Anchor.md", "Mooring.md")


@dataclass(slots=True)
class Found:
    """What one point left behind."""

    problems: list[str] = field(default_factory=list)
    messages: int = 0
    """Shown and looked for."""
    lost: int = 0
    longest_s: float = 0.0
    """How long the oldest text or result that is gone had been on the screen."""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path, Tell], None]
    """Never returns by itself."""
    check: Callable[[Path, list[Told], float], Found]
    within_s: float
    """The kill comes at most so long after the first event."""


# -- turns: streams, tool rounds, compactions


def _script(home: Path, steps: list[dict[str, Any]], limit: int) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "script.json").write_text(json.dumps({"limit": limit, "steps": steps}), "utf-8")


def _desk(home: Path, vault: Path | None = None, **more: Any) -> Desk:
    settings = SETTINGS | {name.replace("__", "."): value for name, value in more.items()}
    return open_desk(home=home, project=home, vault=vault, model=f"scripted:{home / 'script.json'}", settings=settings)


def _prepare_stream(home: Path) -> None:
    _script(home, [{"text": REPLY, "delay_s": 0.004, "usage": USAGE}], 100_000)
    Store(home / STORE_FILE).close()


def _prepare_tools(home: Path) -> None:
    notes = write_notes(home / "notes", 20)
    calls = [{"name": "read_document", "arguments": {"path": path}} for path in notes.paths[:3]]
    round_of_tools = {"text": "I look it up.", "tool_calls": calls, "delay_s": 0.002, "usage": USAGE}
    reply = {"text": REPLY, "delay_s": 0.002, "usage": USAGE}
    _script(home, [round_of_tools, round_of_tools, reply] * 40, 100_000)
    with _desk(home, home / "notes") as desk:
        desk.conversation().ask("Warm up.")


def _prepare_compaction(home: Path) -> None:
    summary = {"text": "They spoke of boats. " * 8, "when": "summary", "delay_s": 0.004, "usage": USAGE}
    _script(home, [{"text": REPLY, "usage": USAGE}, summary], 1_500)
    with _desk(home, context__enabled=False) as desk:  # the first message of a point compacts
        talk, speaker = desk.conversation(), corpus.Speaker(7)
        for _ in range(8):
            talk.ask(speaker.message())


def _talk(home: Path, tell: Tell) -> None:
    notes = home / "notes"
    with _desk(home, notes if notes.exists() else None) as desk:
        talk, speaker = desk.latest() or desk.conversation(), corpus.Speaker(8)
        for number in range(10_000):
            said = f"[{number}] {speaker.message()}"
            for event in talk.stream(said):
                _tell_event(event, tell)


def _tell_event(event: object, tell: Tell) -> None:
    if isinstance(event, Appended):
        tell("asked", event.message.id)
    elif isinstance(event, Sent):
        tell("sent", "")
    elif isinstance(event, TextDelta):
        tell("text", event.text)
    elif isinstance(event, ToolFinished):
        tell("tool", event.result.text[:80])
    elif isinstance(event, SummaryRequested):
        tell("compacting", event.part)
    elif isinstance(event, ContextCompacted):
        tell("compacted", event.compaction_number)


def _check_turns(home: Path, told: list[Told], died: float) -> Found:
    found = Found()
    with Store(home / STORE_FILE) as store:
        found.problems += check_store(store).problems
        asked: str | None = None
        replies: list[list[Told]] = []
        results: list[Told] = []
        for line in [*told, Told(died, "asked", None)]:
            if line.kind == "asked":
                if asked is not None:
                    _check_ask(store, asked, replies, results, died, found)
                asked, replies, results = line.what, [], []
            elif line.kind == "sent":
                replies.append([])
            elif line.kind == "text":
                replies[-1].append(line)
            elif line.kind == "tool":
                results.append(line)
        _check_compactions(store, told, found)
    return found


def _check_ask(
    store: Store, id: str, replies: list[list[Told]], results: list[Told], died: float, found: Found
) -> None:
    """A message, the replies that were streamed after it, and the results of its tools."""
    said = {each.message.id: each for each in store.tree.after(0, most=100_000)}
    found.messages += 1
    if id not in said:
        found.lost += 1
        found.problems.append(f"message {id} was shown and is gone")
        return
    later = [each.message for each in said.values() if each.n > said[id].n]
    own = []
    for message in later:
        if message.role == "user":
            break
        own.append(message)
    texts = [message.text for message in own if message.role == "assistant"]
    for number, shown in enumerate(part for part in replies if part):
        found.messages += 1
        _check_text(shown, texts[number] if number < len(texts) else "", died, found)
    stored = sum(len(message.results) for message in own)
    found.messages += len(results)
    for line in results[stored:]:
        found.longest_s = max(found.longest_s, died - line.at)
        found.lost += died - line.at > SHOWN_S


def _check_text(shown: list[Told], stored: str, died: float, found: Found) -> None:
    """The words that were shown must be the beginning of what is stored; a word that is gone counts by its age."""
    text = ""
    for line in shown:
        text += line.what
        if not stored.startswith(text.rstrip()):
            age = died - line.at
            found.longest_s = max(found.longest_s, age)
            if age > SHOWN_S:
                found.lost += 1
            return


def _check_compactions(store: Store, told: list[Told], found: Found) -> None:
    numbers = [line.what for line in told if line.kind == "compacted"]
    stored = {
        each.message.compaction.compaction_number
        for each in store.tree.after(0, most=100_000)
        if each.message.compaction
    }
    found.messages += len(numbers)
    if gone := set(numbers) - stored:
        found.lost += len(gone)
        found.problems.append(f"compactions {sorted(gone)} were shown and are gone")
    last = [line.kind for line in told if line.kind in ("compacting", "compacted")][-1:]
    found.remark = {"compacting": "while compacting", "compacted": "after a compaction"}.get("".join(last), "")


# -- migration


def _prepare_old(home: Path) -> None:
    _script(home, [{"text": REPLY, "delay_s": 0.004, "usage": USAGE}], 100_000)
    said = (Message(f"old{number}", "user", (Text(f"Old message {number}"),)) for number in range(OLD_MESSAGES))
    with Store(home / STORE_FILE) as store:
        store.tree.append_all(store.tree.create(title="Long").id, said)
        with store.database.write() as connection:
            connection.exec_driver_sql("DROP TABLE charges")
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{REVISIONS[0]}'")


def _migrate(home: Path, tell: Tell) -> None:
    tell("begun", "")
    Store(home / STORE_FILE).close()
    tell("migrated", "")
    _talk(home, tell)


def _check_migration(home: Path, told: list[Told], died: float) -> Found:
    with Store(home / STORE_FILE) as store:
        there = {each.message.id for each in store.tree.after(0, most=100_000)}
    found = _check_turns(home, told, died)
    gone = {f"old{number}" for number in range(OLD_MESSAGES)} - there
    found.messages += OLD_MESSAGES
    found.lost += len(gone)
    found.remark = "" if any(line.kind == "migrated" for line in told) else "while migrating"
    return found


# -- notes


def _prepare_notes(home: Path) -> None:
    notes = home / "notes"
    notes.mkdir(parents=True)
    for number in range(LINKING):
        body = corpus.Speaker(number).text(1_500)
        (notes / f"Note {number}.md").write_text(f"# Note {number}\n\nSee [[{NAMES[0][:-3]}]].\n\n{body}\n", "utf-8")
    (notes / NAMES[0]).write_text("# The anchor\n\nIt holds.\n", "utf-8")


def _rename(home: Path, tell: Tell) -> None:
    vault = Vault(home / "notes", home / "catalog.db")
    vault.refresh()
    for number in range(10_000):
        tell("renaming", number)
        vault.rename(NAMES[number % 2], NAMES[(number + 1) % 2])
        tell("renamed", number)


def _check_notes(home: Path, told: list[Told], died: float) -> Found:
    """Every note is whole: its text with the link as it was, or as it became."""
    found, notes = Found(messages=LINKING + 1), home / "notes"
    behind = 0
    target = next((name for name in NAMES if (notes / name).exists()), None)
    if target is None or (notes / target).read_text("utf-8") != "# The anchor\n\nIt holds.\n":
        found.lost += 1
        found.problems.append("the renamed note is gone")
    for number in range(LINKING):
        path = notes / f"Note {number}.md"
        text = path.read_text("utf-8") if path.exists() else ""
        body = corpus.Speaker(number).text(1_500)
        forms = [f"# Note {number}\n\nSee [[{name[:-3]}]].\n\n{body}\n" for name in NAMES]
        if text not in forms:
            found.lost += 1
            found.problems.append(f"{path.name} is not whole")
        behind += target is not None and f"[[{target[:-3]}]]" not in text
    vault = Vault(notes, home / "catalog.db")
    if broken := vault.broken_links():
        found.lost += len(broken)
        found.problems.append(f"{len(broken)} links are broken after the rename was finished")
    vault.close()
    found.remark = "half-way: links were rewritten at the next opening" if behind else ""
    return found


# -- the search index


def _prepare_index(home: Path) -> None:
    import_history(home, INDEXED)


def _index(home: Path, tell: Tell) -> None:
    with _desk(home) as desk:
        for number in range(10_000):
            tell("indexing", number)
            desk.index(anew=True)
            tell("indexed", number)


def _check_index(home: Path, told: list[Told], died: float) -> Found:
    found = Found(messages=INDEXED)
    with _desk(home) as desk:
        found.problems += check_store(desk.store).problems
        status = desk.index()
        if (status.messages, status.indexed) != (INDEXED, INDEXED):
            found.problems.append(f"{status.indexed} of {status.messages} messages are in the index")
        found.lost += INDEXED - status.messages
        text = desk.store.tree.after(INDEXED - 1, most=1)[0].message.text
        if not desk.search(text, limit=1):
            found.problems.append("the last message is not found")
    return found


KINDS = (
    Kind("stream", _prepare_stream, _talk, _check_turns, 1.5),
    Kind("tool rounds", _prepare_tools, _talk, _check_turns, 1.5),
    Kind("compaction", _prepare_compaction, _talk, _check_turns, 2.0),
    Kind("migration", _prepare_old, _migrate, _check_migration, 0.3),
    Kind("rename", _prepare_notes, _rename, _check_notes, 1.0),
    Kind("index", _prepare_index, _index, _check_index, 1.0),
)


# -- processes


def main(quick: bool, count: int | None = None) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    points = count or (QUICK_POINTS if quick else POINTS)
    results: dict[str, list[Found]] = {kind.name: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder, suppress(KeyboardInterrupt):
        _run(Path(folder), points, results)
    _show(results)  # after Ctrl-C what there is


def small_untimed(home: Path) -> Iterator[Figure]:
    results: dict[str, list[Found]] = {kind.name: [] for kind in KINDS}
    _run(home, len(KINDS), results)
    yield wrong("kills: lost or damaged", sum(each.lost + len(each.problems) for [each] in results.values()))


def _run(folder: Path, points: int, results: dict[str, list[Found]]) -> None:
    random = Random(points)
    for kind in KINDS:
        (folder / kind.name).mkdir()
        forked(partial(kind.prepare, folder / kind.name / "template"))
    for number in range(points):
        kind = KINDS[number % len(KINDS)]
        results[kind.name].append(_point(kind, folder / kind.name, random.uniform(0, kind.within_s)))
        if number % 100 == 99:
            print(f"  {number + 1} points", file=sys.stderr, flush=True)


def _point(kind: Kind, folder: Path, delay_s: float) -> Found:
    home = folder / "point"
    shutil.copytree(folder / "template", home)
    try:
        told, died = killed(lambda tell: kind.act(home, tell), delay_s)
        return Found(**forked(lambda: asdict(kind.check(home, told, died))))
    finally:
        shutil.rmtree(home)


def _show(results: dict[str, list[Found]]) -> None:
    rows = []
    for name, found in results.items():
        if not found:
            continue
        longest = max(each.longest_s for each in found)
        lost, problems = sum(each.lost for each in found), sum(bool(each.problems) for each in found)
        shown = f"{sum(each.messages for each in found):,}"
        rows.append([name, f"{len(found):,}", shown, f"{lost}", f"{problems}", f"{longest * 1000:.0f}"])
    seen = [problem for found in results.values() for each in found for problem in each.problems]
    remarks_seen = Counter((name, each.remark) for name, found in results.items() for each in found if each.remark)
    show(
        f"SIGKILL at {sum(map(len, results.values())):,} random points",
        ("", "points", "shown", "lost", "points with problems", "oldest gone ms"),
        rows,
        notes=(
            f"lost: gone though it was shown for more than {SHOWN_S * 1000:.0f} ms; goal 0",
            *(f"{name}: {count} {remark}" for (name, remark), count in sorted(remarks_seen.items())),
            *seen[:20],
        ),
    )
