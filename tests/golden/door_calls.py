"""How the golden files of the Python door are made: for every public name, the calls whose results they hold."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from recto import Text, Tool
from recto.api.blocking import Desk

# Looking changes nothing: these run in one copy, through the blocking and the asynchronous door.
Calls = list[Callable[[Any], Any]]
A, BRANCHES, NOTES, CLERK, SERVED = "By a model", "Branches", "Tools and notes", "The clerk", "How long is she?"
REVISED, SENTENCES, GOAL, SEVERAL = "Revised by hand", "Chosen sentences", "A goal reached", "Several models"

DESK_READS: dict[str, Calls] = {
    "agents": [lambda desk: desk.agents.names()],
    "attached": [lambda desk: desk.attached(first(desk, "Attachments"), 0)],
    "calibration": [
        lambda desk: desk.calibration("openai:gpt-4o-mini"),
        lambda desk: desk.calibration("scripted:models/sentences.json"),
    ],
    "check_embedder": [lambda desk: desk.check_embedder()],
    "compare": [lambda desk: desk.compare()],
    "conversation": [lambda desk: desk.conversation("xyzzy"), lambda desk: desk.conversation(10, as_left=True)],
    "conversations": [
        lambda desk: desk.conversations(limit=2),
        lambda desk: desk.conversations(state="hidden"),
        lambda desk: desk.conversations(state="deleted"),
    ],
    "document_stats": [lambda desk: desk.document_stats(), lambda desk: desk.document_stats("month")],
    "facts": [
        lambda desk: desk.facts.count,
        lambda desk: desk.facts.facts(limit=2),
        lambda desk: desk.facts.facts("person", replaced=False),
        lambda desk: desk.facts.fact(5),
        lambda desk: desk.facts.fact(6),
        lambda desk: desk.facts.search("where does Anna live"),
        lambda desk: desk.facts.relevant("Where does Anna live?"),
        lambda desk: desk.facts.known("I prefer short answers"),
        lambda desk: desk.facts.about(desk.facts.fact(3)),
        lambda desk: desk.facts.export("json"),
        lambda desk: desk.facts.learn(""),
    ],
    "find_conversations": [lambda desk: desk.find_conversations("goal"), lambda desk: desk.find_conversations("Anna")],
    "follow": [lambda desk: desk.follow()],
    "home": [lambda desk: desk.home],
    "index_status": [lambda desk: desk.index_status()],
    "latest": [lambda desk: desk.latest(), lambda desk: desk.latest(unsent=True)],
    "model": [
        lambda desk: desk.model("openai:gpt-4o-mini"),
        lambda desk: desk.model("First mate"),
        lambda desk: desk.model("scripted:models/small.json"),
        lambda desk: desk.model("nobody:nothing"),
    ],
    "project": [lambda desk: desk.project],
    "rebuild": [lambda desk: desk.rebuild()],
    "record": [lambda desk: desk.record(), lambda desk: desk.record("99999")],
    "search": [
        lambda desk: desk.search("euros Ada", limit=2),
        lambda desk: desk.search("船の名前", complete=True, limit=2),
        lambda desk: desk.search("pier", conversation=BRANCHES, role="assistant", since=date(2026, 3, 3), limit=1),
        lambda desk: desk.search("", limit=0),
    ],
    "sent_pick": [lambda desk: desk.sent_pick(None, "rules", 0), lambda desk: desk.sent_pick(None, "rules", 9)],
    "sent_source": [lambda desk: desk.sent_source(None, "rule:style")],
    "servers": [lambda desk: desk.servers],
    "settings": [lambda desk: desk.settings],
    "source_report": [lambda desk: desk.source_report(), lambda desk: desk.source_report("clerk")],
    "spending": [
        lambda desk: desk.spending("total"),
        lambda desk: desk.spending("day"),
        lambda desk: desk.spending("model", conversation=SEVERAL),
        lambda desk: desk.spending("purpose", since="2026-03-06"),
    ],
    "talk_with": [lambda desk: desk.talk_with("#2", BRANCHES)],
    "token_use": [lambda desk: desk.token_use("model"), lambda desk: desk.token_use("total", conversation=A)],
    "unnamed_documents": [lambda desk: desk.unnamed_documents()],
    "vault": [lambda desk: desk.vault.root],
    "vault_search": [lambda desk: desk.vault_search.find_documents("engine").hits],
    "verify": [lambda desk: desk.verify(["last"])],
}


def first(desk: Any, title: str) -> str:
    """The id of the first message of a conversation."""
    sync = getattr(desk, "asynchronous", desk)
    found = next(each for each in sync.store.tree.conversations(limit=None) if each.title == title)
    return str(sync.store.tree.roots(found.id)[0])


TALK_READS: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {
    "agent": [(CLERK, lambda talk: talk.agent)],
    "alternatives": [(BRANCHES, lambda talk: talk.alternatives([talk.head]))],
    "archived": [(A, lambda talk: talk.archived()), (BRANCHES, lambda talk: talk.archived())],
    "branches": [(BRANCHES, lambda talk: talk.branches()), (SERVED, lambda talk: talk.branches())],
    "chosen_settings": [("Hybrid bands", lambda talk: talk.chosen_settings)],
    "compaction": [(A, lambda talk: talk.compaction()), (BRANCHES, lambda talk: talk.compaction())],
    "compactions": [(REVISED, lambda talk: talk.compactions()), (SENTENCES, lambda talk: talk.compactions(limit=1))],
    "compare_strategies": [(A, lambda talk: talk.compare_strategies(("discard", "summarize", "hybrid")))],
    "context_settings": [(CLERK, lambda talk: talk.context_settings)],
    "document": [(NOTES, lambda talk: talk.document)],
    "head": [(A, lambda talk: talk.head)],
    "id": [(A, lambda talk: talk.id)],
    "last_request": [(A, lambda talk: talk.last_request()), ("Where is the shed?", lambda talk: talk.last_request())],
    "last_run": [(GOAL, lambda talk: talk.last_run()), (A, lambda talk: talk.last_run())],
    "ledger": [(A, lambda talk: talk.ledger())],
    "lost_statements": [(A, lambda talk: talk.lost_statements(3)), (BRANCHES, lambda talk: talk.lost_statements())],
    "memory": [("Learned", lambda talk: talk.memory("Where does Anna live?")), (CLERK, lambda talk: talk.memory())],
    "memory_file": [(A, lambda talk: talk.memory_file)],
    "message": [(A, lambda talk: talk.message("#2")), (A, lambda talk: talk.message("#99"))],
    "messages": [
        (BRANCHES, lambda talk: talk.messages(limit=2)),
        (SEVERAL, lambda talk: talk.messages(limit=3)),
        (A, lambda talk: talk.messages(since="#5", before="#7")),
    ],
    "model": [(A, lambda talk: talk.model)],
    "name": [(A, lambda talk: talk.name)],
    "number": [(A, lambda talk: talk.number)],
    "numbered": [(A, lambda talk: talk.numbered({"at": [talk.head, talk.id]}))],
    "overrides": [(CLERK, lambda talk: talk.overrides())],
    "path": [(BRANCHES, lambda talk: talk.path())],
    "request": [(A, lambda talk: talk.request("#4"))],
    "request_use": [(A, lambda talk: talk.request_use())],
    "session": [(A, lambda talk: talk.session)],
    "settings": [(CLERK, lambda talk: talk.settings)],
    "sources": [(CLERK, lambda talk: talk.sources()), (NOTES, lambda talk: talk.sources(("tool",)))],
    "stats": [(A, lambda talk: talk.stats()), (GOAL, lambda talk: talk.stats()), (NOTES, lambda talk: talk.stats())],
    "stored_head": [(BRANCHES, lambda talk: talk.stored_head())],
    "strategy": [("Discarded", lambda talk: talk.strategy), (A, lambda talk: talk.strategy)],
    "strategy_in_force": [
        (A, lambda talk: talk.strategy_in_force()),
        (A, lambda talk: talk.strategy_in_force("hybrid")),
    ],
    "suggest_documents": [("Notes again", lambda talk: talk.suggest_documents(2))],
    "summary_block": [(SENTENCES, lambda talk: talk.summary_block()), (BRANCHES, lambda talk: talk.summary_block())],
    "title": [(A, lambda talk: talk.title)],
    "tool_result": [(NOTES, lambda talk: talk.tool_result("#3")), (NOTES, lambda talk: talk.tool_result("#2"))],
    "transcript": [(REVISED, lambda talk: talk.transcript(limit=4)), (NOTES, lambda talk: talk.transcript(limit=2))],
    "pending_events": [(A, lambda talk: talk.pending_events())],
    "vault": [(NOTES, lambda talk: talk.vault.root)],
    "waiting": [(BRANCHES, lambda talk: talk.waiting())],
    "wake": [(A, lambda talk: talk.wake())],
    "watch_vault": [(NOTES, lambda talk: talk.watch_vault())],
    "what_if": [
        (A, lambda talk: talk.what_if("#9", strategy="hybrid")),
        (A, lambda talk: talk.what_if("#9", window=4000)),
    ],
    "window": [
        (A, lambda talk: talk.window("And now?")),
        (NOTES, lambda talk: talk.window("See [[Harbour]]")),
        (CLERK, lambda talk: talk.window("@rule:tests How?", strategy="discard")),
    ],
}

# These change something: each name has a copy of its own.
DESK_WRITES: dict[str, Calls] = {
    "hide": [lambda desk: desk.hide(BRANCHES)],
    "close": [lambda desk: desk.close()],
    "delete": [lambda desk: desk.delete(BRANCHES), lambda desk: desk.delete(BRANCHES)],
    "distrust": [lambda desk: desk.distrust("tides"), lambda desk: desk.distrust("nothing")],
    "empty_trash": [lambda desk: desk.empty_trash(30), lambda desk: desk.empty_trash()],
    "export": [
        lambda desk: desk.export("talk.jsonl", SERVED).read_bytes().count(b"\n"),
        lambda desk: desk.export("talk.md", BRANCHES, format="markdown").read_text(),
        lambda desk: desk.export("all.jsonl", everything=True).read_bytes().count(b"\n"),
    ],
    "facts": [
        lambda desk: desk.facts.learn("The cat is called Miso", "other"),
        lambda desk: desk.facts.learn("Anna moved to Bremen"),
        lambda desk: desk.facts.edit(5, "The mooring costs 980 euros"),
        lambda desk: desk.facts.replace(3, 14),
        lambda desk: desk.facts.forget(7),
        lambda desk: desk.facts.forget(99),
        lambda desk: desk.facts.import_file(Path("paste.txt")),
    ],
    "import_file": [
        lambda desk: desk.import_file(desk.export("talk.jsonl", BRANCHES)),
        lambda desk: desk.import_file("talk.jsonl", as_new=True),
        lambda desk: desk.import_file("nothing.jsonl"),
    ],
    "index": [lambda desk: desk.index(), lambda desk: desk.index(anew=True)],
    "prune": [
        lambda desk: desk.prune("2d", dry_run=True),
        lambda desk: desk.prune("2d", key="laptop"),
        lambda desk: desk.prune("4d", conversation=BRANCHES),
        lambda desk: desk.prune("soon"),
    ],
    "rename": [lambda desk: desk.rename(BRANCHES, "The  cutter"), lambda desk: desk.rename("The cutter", " ")],
    "restore": [lambda desk: desk.restore("In the trash"), lambda desk: desk.restore(BRANCHES)],
    "run": [lambda desk: desk.run(desk.asynchronous.index_status())],
    "accept_tools": [lambda desk: desk.accept_tools(())],
    "tool_changes": [lambda desk: desk.tool_changes("tides"), lambda desk: desk.tool_changes("nothing")],
    "trust": [lambda desk: desk.trust("tides"), lambda desk: desk.trust("nothing")],
    "unhide": [lambda desk: desk.unhide("Hidden away")],
    "use": [
        lambda desk: desk.use(model="scripted:models/small.json"),
        lambda desk: desk.conversation().model,
        lambda desk: desk.use(vault="nowhere"),
    ],
}


LOG = Tool("long_log", "Reads the log of the boat.", {"type": "object", "properties": {}})


def both_halves(desk: Desk) -> Any:
    talk = desk.conversation()
    prepared = talk.prepare("How long is she?", system="You are a shipwright.")
    return prepared, talk.record(
        prepared, {"choices": [{"message": {"role": "assistant", "content": "Seven metres."}}]}
    )


def extended(desk: Desk) -> Any:
    talk, said = desk.conversation(), [{"role": "user", "content": "How long is she?"}]
    answered = [*said, {"role": "assistant", "content": "Seven."}, {"role": "user", "content": "And wide?"}]
    return [talk.extend(said), talk.extend(answered), talk.extend(answered), talk.extend([{"role": "nobody"}])]


def talk(title: str, call: Callable[[Any], Any]) -> Callable[[Desk], Any]:
    return lambda desk: call(desk.conversation(title))


def new(model: str, call: Callable[[Any], Any]) -> Callable[[Desk], Any]:
    def asked(desk: Desk) -> Any:
        desk.use(model=f"scripted:models/{model}.json")
        return call(desk.conversation())

    return asked


TALK_WRITES: dict[str, Calls] = {
    "add_source": [talk(CLERK, lambda t: t.add_source("rule:style")), talk(CLERK, lambda t: t.add_source("rule:x"))],
    "add_sources": [talk(CLERK, lambda t: t.add_sources(["rule:tests", "rule:style"]))],
    "allow": [talk(NOTES, lambda t: t.allow("recto/read_document")), talk(NOTES, lambda t: t.allow("nobody/nothing"))],
    "ask": [
        talk(A, lambda t: t.ask("And now?")),
        talk(BRANCHES, lambda t: t.ask("Who owns her?", model="scripted:models/small.json", temperature=0.5)),
        talk(A, lambda t: t.ask("")),
        talk(A, lambda t: t.ask("x", temperature=9)),
        new("reader", lambda t: t.ask("How tall is the mast of [[Sorrel]]?")),
        new("logs", lambda t: t.ask("Read the log.", tools=[LOG])),
        new("eyes", lambda t: t.ask([Text("What is it?")], attachments=["dot.png"])),
        new("lost", lambda t: t.ask("Is anybody there?")),
    ],
    "ask_again": [talk(NOTES, lambda t: t.ask_again("recto/read_document"))],
    "clear": [talk(A, lambda t: t.clear())],
    "compact": [talk(REVISED, lambda t: t.compact("the prices")), talk(BRANCHES, lambda t: t.compact())],
    "edit": [talk(BRANCHES, lambda t: t.edit("#1", "Where was she?")), talk(BRANCHES, lambda t: t.edit("#2", "x"))],
    "edit_summary": [talk(A, lambda t: t.edit_summary("All is told.")), talk(A, lambda t: t.edit_summary(""))],
    "extend": [extended],
    "fork": [talk(BRANCHES, lambda t: t.fork("#2")), talk(BRANCHES, lambda t: t.fork("#99"))],
    "open_document": [talk(NOTES, lambda t: t.open_document("Sorrel")), talk(NOTES, lambda t: t.open_document("x"))],
    "pin": [talk(A, lambda t: t.pin("#1")), talk(A, lambda t: t.pin("#99"))],
    "prepare": [both_halves, talk(SENTENCES, lambda t: t.prepare("And now?", tools=[LOG]))],
    "queue": [
        talk(A, lambda t: t.queue("And another thing")),
        talk(A, lambda t: t.queue("", attachments=["paste.txt"])),
    ],
    "record": [both_halves],
    "regenerate": [talk(BRANCHES, lambda t: t.regenerate())],
    "remember_in_project": [talk(A, lambda t: t.remember_in_project("The tests are quick."))],
    "remove_source": [talk(CLERK, lambda t: t.remove_source("rule:night"))],
    "remove_sources": [talk(CLERK, lambda t: t.remove_sources(["ref:prices", "rule:x"]))],
    "run_goal": [new("worker", lambda t: t.run_goal("Find out", max_steps=9)), talk(A, lambda t: t.run_goal())],
    "set_include": [talk(CLERK, lambda t: t.set_include("rule:night", "agent"))],
    "set_priority": [talk(A, lambda t: t.set_priority("#1", 9)), talk(A, lambda t: t.set_priority("#1", 0))],
    "set_setting": [talk(A, lambda t: t.set_setting("threshold", 0.6)), talk(A, lambda t: t.set_setting("model", "x"))],
    "stop_goal": [talk(GOAL, lambda t: t.stop_goal())],
    "stream": [talk(A, lambda t: t.stream("And now?")), new("small", lambda t: t.stream("And now?"))],
    "stream_compaction": [talk(REVISED, lambda t: t.stream_compaction())],
    "stream_edit": [talk(BRANCHES, lambda t: t.stream_edit("#1", "Where was she?"))],
    "stream_goal": [new("worker", lambda t: t.stream_goal("Find out", max_steps=9))],
    "stream_regenerate": [talk(BRANCHES, lambda t: t.stream_regenerate())],
    "switch": [talk(BRANCHES, lambda t: t.switch(t.branches()[0].message.id))],
    "take_back": [talk(BRANCHES, lambda t: t.take_back()), talk(A, lambda t: t.take_back())],
    "uncompact": [talk(A, lambda t: t.uncompact()), talk(BRANCHES, lambda t: t.uncompact())],
    "undo": [talk(BRANCHES, lambda t: t.undo())],
    "unpin": [talk(REVISED, lambda t: t.unpin("#1")), talk(A, lambda t: t.unpin("#1"))],
    "use": [talk(A, lambda t: t.use("scripted:models/mate.json")), talk(A, lambda t: t.use("nobody:nothing"))],
    "use_strategy": [talk(A, lambda t: t.use_strategy("hybrid")), talk(A, lambda t: t.use_strategy("nonsense"))],
}
