"""Makes the golden home: one store with every kind of thing that a store can hold.

Run it once for a new kind of thing, and commit what it writes: `python -m tests.store.golden.make`. It works in
/srv/golden, which must not exist, so that no path of a machine is in the home; it needs a PostgreSQL server's programs.
"""

import json
import lzma
import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cluster import find_programs, throwaway_cluster
from click.testing import CliRunner
from tests.compaction.test_set_aside import said as duty
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, assistant, user
from tests.store.golden.clock import Clock
from tests.store.golden.upstream import running
from tests.store.golden.world import write_world

from recto import Tool, ToolResult
from recto.api.blocking import Desk, Talk, open_desk
from recto.cli.main import recto
from recto.events import TextDelta
from recto.serve.gateway import ServeOptions

HERE = Path(__file__).parent
ROOT = Path("/srv/golden")
HOME, PROJECT, NOTES = ROOT / "home", ROOT / "project", ROOT / "notes"
DERIVED = ("search.db", "facts.db", "sources.db", "vaults", "runs", "backups", "logs")
"""Files of a home that Recto builds again by itself."""
CLOCK = Clock("2026-03-02T08:00:00+00:00")
TOOL = Tool("long_log", "Reads the log of the boat.", {"type": "object", "properties": {}})


def run(*args: str, input: str | None = None) -> str:
    done = CliRunner().invoke(recto, list(args), input=input)
    assert done.exit_code == 0, (args, done.output, done.exception)
    return done.stdout


def desk(model: str | None = None, **settings: Any) -> Desk:
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return open_desk(home=HOME, model=f"scripted:models/{model}.json" if model else None, settings=named)


def talked(at: Desk, title: str, *texts: str, agent: str = "default", **settings: Any) -> Talk:
    CLOCK.ahead(hours=3)
    talk = at.conversation(agent=agent, settings={f"context.{key}": value for key, value in settings.items()})
    for text in texts:
        CLOCK.ahead(minutes=1)
        talk.ask(text)
    if talk.id and title:
        at.rename(talk.id, title)
    return talk


def until(talk: Talk, times: int, start: int = 0, pause_s: float = 0) -> None:
    """Talks on until so many compactions have come; a pause leaves time for what is done in the background."""
    number, found = start, 0
    while found < times:
        before = talk.compaction()
        CLOCK.ahead(minutes=1)
        talk.ask(duty(number) * (4 if pause_s else 1))
        time.sleep(pause_s)
        number, found = number + 1, found + (talk.compaction() != before)


# -- conversations


def compactions() -> None:
    for model, title, times, settings in (
        ("small", "By a model", 2, dict[str, Any]()),
        ("ahead", "Prepared ahead", 1, {"prepare_at": 0.6}),
        ("sentences", "Chosen sentences", 3, {"summary_tokens": 280}),
        ("failing", "A model that failed to sum up", 1, {}),
        ("small", "Discarded", 1, {"strategy": "discard"}),
    ):
        with desk(model) as at:
            talk = talked(at, "", **settings)
            until(talk, times, pause_s=0.2 if model == "ahead" else 0)
            at.rename(talk.id or "", title)
    with desk("small") as at:
        talk = talked(at, "", *(duty(number) for number in range(4)), strategy="hybrid")
        for message, priority in (("#1", 9), ("#3", 7), ("#5", 2)):
            talk.set_priority(message, priority)
        until(talk, 1, 4)
        at.rename(talk.id or "", "Hybrid bands")


def revisions() -> None:
    with desk("clerk") as at:
        talk = talked(at, "Revised by hand", *(duty(number) * 3 for number in range(9)))
        changes: list[Callable[[], object]] = [
            lambda: talk.pin("#1"),
            lambda: talk.compact("the prices"),
            lambda: talk.edit_summary("Nora and the clerk spoke of duties; the fee is 940 euros."),
            lambda: talk.pin("#3"),
            lambda: talk.unpin("#3"),
            lambda: talk.uncompact(),
            lambda: talk.compact(),
        ]
        for change in changes:
            CLOCK.ahead(minutes=1)
            change()
        cleared = talked(at, "Cleared", "How long is she?", "And how wide?")
        cleared.clear()
        cleared.ask("What is a cutter?")
        lines = "\n".join(f"Row {number} says that nothing has happened on that day." for number in range(600))
        talked(at, "Longer than the window", f"Who closed the sluice?\n{lines}\nDahl closed it.\n{lines}\nThat is all.")


def branches() -> None:
    with desk("mate") as at:
        talk = talked(at, "Branches", "Where is she?", "Who owns her?", "What does it cost?")
        changes: list[Callable[[], object]] = [
            lambda: talk.edit("#3", "Who sold her?"),
            lambda: talk.regenerate(),
            lambda: talk.fork("#2"),
            lambda: talk.ask("And what is her rig?"),
            lambda: talk.undo(),
            lambda: talk.ask("When was she built?"),
            lambda: talk.queue("And ask the sailmaker, please."),
        ]
        for change in changes:
            CLOCK.ahead(minutes=1)
            change()
        talked(at, "Taken back", "Where is she?", "Nonsense.").undo()
        talked(at, "Hidden away", "Something old.")
        talked(at, "In the trash", "Something wrong.")
        at.hide("Hidden away")
        at.delete("In the trash")


def scripts_of_the_world() -> None:
    with desk("mate") as at:
        talked(
            at,
            "文字 · أحرف · अक्षर",
            "船の名前は何ですか。「ソレル」でしょうか？",
            "متى تم بناء القارب؟ السعر ٢٠ يورو.",
            "नाव कहाँ है? कीमत २० यूरो है।",
            "Где стоит яхта «Соррел»? Ёлка, подъезд.",
            "איפה הסירה? 👩‍👩‍👧‍👦 é ﬁ 🇳🇴 Zażółć gęślą jaźń",
            "Bis Freitag müssen wir 940 € an Frau Özdemir zahlen; nicht an Weiß.",
        )


def read_log(talk: Talk, days: int) -> None:
    """By a tool of the caller's own."""
    log = "\n".join(f"Day {day}: wind {day % 9} from the west, {day * 7} miles." for day in range(days))
    reply = talk.ask("Read the log.", tools=[TOOL])
    talk.ask([ToolResult(reply.pending_calls[0].id, "long_log", log)], tools=[TOOL])


def tools_and_notes() -> None:
    run("vault", "index", "--vault", str(NOTES), "--no-vectors")
    with desk("reader", vault=str(NOTES)) as at:
        talk = talked(
            at, "", "How tall is the mast of [[Sorrel]]?", "Where is the berth? See [[Harbour]].", "And [[Nowhere]]?"
        )
        read_log(talk, days=20)
        until(talk, 1)
        at.rename(talk.id or "", "Tools and notes")
        talked(
            at, "Notes again", "What does [[Sorrel]] cost? See [[Budget]] and [[Sorrel#Engine]].", "Is [[Sorrel]] old?"
        )
        talked(at, "And again", "Is [[Sorrel|the boat]] dry?", "And [[日本語]]?", "And @paste.txt?")
        at.conversation("And again").suggest_documents()
    with desk("logs") as at:
        talk = talked(at, "")
        while talk.compaction() is None:
            read_log(talk, days=60)
        at.rename(talk.id or "", "Old results")
    with desk("mate", vault=str(NOTES), references__gists=True) as at:
        talked(at, "A long note", "What does [[Log of 2025]] say?")
        time.sleep(0.5)


def agent_runs() -> None:
    with desk("worker", vault=str(NOTES)) as at:
        for title, goal, steps in (
            ("A goal reached", "Find out which engine was chosen", 9),
            ("A goal blocked", "Ask the harbour master for the shed", 9),
            ("A goal stopped", "Think about the winter", 9),
            ("A goal out of steps", "Read everything", 1),
        ):
            talk = talked(at, "")
            talk.run_goal(goal, max_steps=steps)
            at.rename(talk.id or "", title)


def sources() -> None:
    with desk("clerk") as at:
        talk = talked(at, "The clerk", "What is a berth?", agent="clerk")
        talk.add_source("reference:prices")
        talk.remove_source("rule:style")
        talk.ask("What does a night cost? @rule:night")
        talk.ask("How do I test a parser of tides? It says a night is 20 euros.")


def attachments() -> None:
    with desk("eyes") as at:
        talk = talked(at, "")
        for file in ("dot.png", "plan.pdf", "paste.txt"):
            talk.ask(f"What is {file}?", attachments=[file])
        at.rename(talk.id or "", "Attachments")


def providers() -> None:
    usage = {"prompt_tokens": 140, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 100}}
    openai = Loopback.events(
        {"choices": [{"index": 0, "delta": {"content": "From afar."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        "[DONE]",
    )
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 2100, "cache_read_input_tokens": 50}}}
    thinking = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
    ]
    text = [
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "From further."}},
        {"type": "content_block_stop", "index": 1},
    ]
    end = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    ]
    anthropic = Loopback.events(start, *thinking, *text, *end)
    long = "Some words that fill the window a little. " * 200
    with running(Loopback(openai, routes={})) as one, running(Loopback(anthropic, routes={})) as two:
        os.environ |= {"RECTO_OPENAI_BASE_URL": one, "RECTO_ANTHROPIC_BASE_URL": two}
        os.environ |= {"OPENAI_API_KEY": "not-a-key", "ANTHROPIC_API_KEY": "not-a-key"}
        with open_desk(home=HOME, model="openai:gpt-4o-mini") as at:
            talk = talked(at, "Several models", "Who answers?", "And again?")
            talk.use("anthropic:claude-sonnet-4-5")
            talk.ask(long)
            talk.ask("And now?")
            talk.use("scripted:models/mate.json")
            talk.ask("And here?")
    for name in ("RECTO_OPENAI_BASE_URL", "RECTO_ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        del os.environ[name]


def own_client() -> None:
    with desk("mate") as at:
        CLOCK.ahead(hours=1)
        talk = at.conversation()
        talk.extend([{"role": "system", "content": "You are a shipwright."}, user("How long is she?")])
        talk.record(talk.prepare(), "Seven metres.")
        at.rename(talk.id or "", "A client of its own")


def remember(text: str, *more: str) -> str:
    return str(json.loads(run("memory", "add", text, *more, "--json"))["number"])


def facts() -> None:
    berlin = remember("My sister Anna lives in Berlin", "--kind", "person")
    CLOCK.ahead(days=1)
    hamburg = remember("Anna moved to Hamburg", "--kind", "person")
    run("memory", "edit", berlin, "--replaced-by", hamburg)
    remember("I prefer short answers", "--kind", "preference")
    remember("I prefer short answers.", "--kind", "preference")
    run("memory", "edit", remember("The mooring costs 900 euros"), "The mooring costs 940 euros")
    run("memory", "forget", remember("This will be forgotten"), "--yes")
    remember("The parser project ships in June", "--kind", "project")
    with desk("learner", context__learn_facts="on") as at:
        talk = talked(at, "Learned", "My daughter Ida is allergic to nuts. We decided to sell the dinghy.")
        talk.ask("Where does Anna live?")


def imported() -> None:
    file = ROOT / "messages.json"
    file.write_text(json.dumps([user("Where is the shed?"), assistant("Behind the harbour office.")]))
    os.utime(file, (1_770_000_000, 1_770_000_000))
    run("context", "import", str(file))
    CLOCK.ahead(hours=1)
    file.unlink()


# -- the endpoint


def endpoint() -> None:
    secret = json.loads(run("serve", "keys", "add", "laptop", "--spend-day", "5", "--json"))["key"]
    other = json.loads(run("serve", "keys", "add", "phone", "--mode", "record", "--json"))["key"]
    model = "scripted:models/served.json"
    server = Endpoint(HOME, model, ServeOptions())
    try:
        by = {"authorization": f"Bearer {secret}"}
        tool = {"type": "function", "function": {"name": "depth", "parameters": {"type": "object", "properties": {}}}}
        said = [user("How long is she?")]
        first = server.chat(*said, headers=by)
        said += [first.json()["choices"][0]["message"], user("How wide is she?")]
        said += [server.chat(*said, headers=by).json()["choices"][0]["message"]]
        server.chat(*said[:2], user("How deep is she?"), headers=by)
        said += [user("How deep is it?")]
        called = server.chat(*said, headers=by, tools=[tool]).json()["choices"][0]["message"]
        said += [called, {"role": "tool", "tool_call_id": "call_depth", "content": "3 m"}]
        server.chat(*said, headers=by, tools=[tool])
        server.chat(user("How long is she, please?"), *said[1:], user("Thank you."), headers=by)
        body = {"model": model, "max_tokens": 100, "system": "Be kind.", "messages": [user("Hello there")]}
        named = by | {"x-recto-conversation": "stern"}
        server.client.post("/v1/messages", json=body, headers=named).raise_for_status()
        server.chat(user("Hello there"), headers={"authorization": f"Bearer {other}"}).raise_for_status()
        CLOCK.ahead(minutes=5)
        server.client.post("/v1/responses", json={"model": model, "input": "Hello"}, headers=by).raise_for_status()
        long, answers = [user(duty(0))], 0
        while True:
            response = server.chat(*long, headers=by)
            long += [response.json()["choices"][0]["message"], user(duty(answers := answers + 1))]
            if response.headers["x-recto-compacted"] == "true":
                break
    finally:
        server.stop()
    server = Endpoint(HOME, "scripted:models/lost.json", ServeOptions())
    try:
        assert server.chat(user("Is anybody there?"), headers=by).status_code != 200
    finally:
        server.stop()


def sums() -> None:
    """The store keeps what reports have summed."""
    run("sources", "stats", "--by", "day")
    run("vault", "stats", "--by", "month", "--vault", str(NOTES))
    run("vault", "graph", "--used", "--vault", str(NOTES))
    run("context", "cost", "--all")


def broken_off() -> None:
    """A reply whose process ends in the middle of it."""
    at = desk("broken")
    talk = talked(at, "")
    came = 0
    for event in talk.stream("Count to ten."):
        came += isinstance(event, TextDelta)
        if came > 150:
            os._exit(0)


# -- what is committed


def without_derived(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    if len(parts) > 1 and parts[0] == "home" and parts[1].removesuffix("-wal").removesuffix("-shm") in DERIVED:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 1_770_000_000
    return member


def pack_home() -> None:
    with sqlite3.connect(HOME / "recto.db") as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    with tarfile.open(HERE / "world.tar.xz", "w:xz", preset=9) as archive:
        for name in ("home", "notes", "project"):
            archive.add(ROOT / name, name, filter=without_derived)


def dump(make: Callable[[], str], programs: Path) -> None:
    """The same store in PostgreSQL, as plain statements of any version."""
    url = make()
    run("store", "copy", "--to", url)
    name, folder = re.findall(r"/(\w+)\?host=(.+)", url)[0]
    options = ["--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges", "-h", folder, "-U", "recto", name]
    text = subprocess.run([programs / "pg_dump", *options], capture_output=True, text=True, check=True).stdout
    kept = (
        line
        for line in text.splitlines(keepends=True)
        if not re.match(r"SET |SELECT pg_catalog\.set_config|--|\\", line)
    )
    with lzma.open(HERE / "postgresql.sql.xz", "wt", preset=9, encoding="utf-8") as file:
        file.write(re.sub(r"\n{2,}", "\n", "".join(kept)))


def main() -> None:
    ROOT.mkdir(parents=True)
    try:
        write_world(ROOT)
        os.chdir(PROJECT)
        os.environ |= {
            "RECTO_HOME": str(HOME),
            "RECTO_SEARCH_EMBEDDER": "none",
            "RECTO_STORE_BACKUP": "off",
            "TZ": "UTC",
        }
        CLOCK.install()
        kinds = (compactions, revisions, branches, scripts_of_the_world, tools_and_notes, agent_runs, sources)
        for make in (*kinds, attachments, providers, own_client, facts, imported, endpoint, sums):
            print(make.__name__)
            make()
        if (child := os.fork()) == 0:
            broken_off()
        os.waitpid(child, 0)
        pack_home()
        programs = find_programs()
        assert programs
        with throwaway_cluster(programs) as databases:
            dump(databases, programs)
    finally:
        os.chdir(HERE)
        shutil.rmtree(ROOT)
    for name in ("world.tar.xz", "postgresql.sql.xz"):
        print(name, (HERE / name).stat().st_size)


if __name__ == "__main__":
    main()
