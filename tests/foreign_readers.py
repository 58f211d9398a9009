"""Everything that reads a text of somebody else: notes, messages, replies, results, exports, files of a project."""

import io
import json
import tempfile
from contextlib import suppress
from datetime import date
from itertools import count, pairwise
from pathlib import Path

from rich.console import Console
from tests.hostile_texts import Read

from recto.agents.agent_file import read_source_file
from recto.api.client_turn import differing_parts
from recto.base.text import clean, closest_key, without_key
from recto.chat.blocks import Text, ToolResult
from recto.chat.chain import print_of
from recto.chat.message import Message, blocks_from
from recto.cli.screen import Growing, Page
from recto.cli.show import fold, shortened, visible
from recto.compaction.condensed import divide, question_in
from recto.errors import RectoError
from recto.memory.fact_files import parse_fact_file
from recto.memory.statements import (
    full_names,
    guessed_kind,
    is_negated,
    learnable,
    may_contradict,
    numbers_in,
    says_same,
)
from recto.providers.embedded import ReplyEnd
from recto.providers.http import EventReader
from recto.recall.indexed_message import speaker
from recto.search.dates import date_labels, named_days, take_days
from recto.search.keyword_index import IndexItem, cut_item
from recto.search.passages import asks_only, key_sentences, shorten_message, split_sentences
from recto.search.terms import query_terms, topic_words, words
from recto.sentences.features import read_conversation
from recto.sentences.priority import priority_of
from recto.sentences.segments import readable, segments
from recto.sources.advice import forbids
from recto.sources.documents import find_mentions, without_mentions
from recto.sources.memory_files import imported_paths
from recto.sources.server_config import without_secret_address, without_secrets
from recto.sources.source import Rule, SourceId
from recto.sources.use_detection import SentSource, detect_uses
from recto.summary.evidence import Evidence
from recto.summary.extractive_summary import Extraction, plain_messages, truncate
from recto.summary.ledger import ledger_lines, ledger_rows, parse_ledger, parse_place
from recto.summary.set_aside import (
    add_to_contents,
    find_dropped,
    find_returning,
    find_topic,
    parse_contents,
    split_returned,
)
from recto.summary.values import find_values
from recto.summary.verification import (
    CoveredMessages,
    FormerSummary,
    mark_unsupported,
    split_stated,
    verified_part,
)
from recto.transfer.formats import open_source
from recto.vault.answers import found_terms, rated_statements, term_weights
from recto.vault.document import Document, block_text, section_text
from recto.vault.document_summary import document_summary
from recto.vault.gitignore import _parse_pattern
from recto.vault.imports import find_imports
from recto.vault.link_resolver import LinkResolver
from recto.vault.links import find_all_links, find_links
from recto.vault.note_chunks import note_chunks, note_date, note_day, order_in_time, parts_text, relevant_parts
from recto.vault.note_statements import note_statements
from recto.vault.question import asks_for_overview, is_arithmetic, leans_on_earlier, parse_question
from recto.vault.rename import RenamePlan, rewrite_links
from recto.web.markdown import StreamedMarkdown, coloured, rendered, rendered_note
from recto.window.count import estimate_text
from recto.window.request import defuse
from recto.window.window import quote_if_framelike

_QUESTION = parse_question("What does the winch cost, and who pays 310 euros for it?")


def _said(text: str, role: str = "user") -> Message:
    return Message("m", "user" if role == "user" else "assistant", (Text(text),), created="2026-01-31T12:00:00.000Z")


def _answer_of_note(text: str) -> None:
    """As a question about notes reads each of them."""
    document = Document("note.md", text)
    statements = note_statements(document, 0, len(text))
    rated_statements(_QUESTION, statements, "note", term_weights(_QUESTION, [text]))


def _streamed(text: str) -> None:
    """A reply in the terminal."""
    growing, end = Growing(), ReplyEnd()
    for part in _parts(text):
        growing.add(end.take(part))
    growing.add(end.rest())
    growing.end()


def _streamed_to_page(text: str) -> None:
    page = StreamedMarkdown()
    for part in _parts(text):
        page.add(part)
        page.changes()


def _parts(text: str) -> list[str]:
    """As many of a short text as of a long one."""
    places = [len(text) * number // 4 for number in range(5)]
    return [text[start:end] for start, end in pairwise(places)]


def _drawn(text: str) -> None:
    Console(file=io.StringIO(), width=80, color_system="truecolor", force_terminal=True).print(Page(text), crop=False)


def _relevant_parts(text: str) -> None:
    document = Document("note.md", text)
    parts_text(document, relevant_parts(document, "What does the winch cost?", room=400, count=estimate_text))


def _imported(text: str) -> None:
    """A file that is imported, whatever it holds, and a list of messages with the text in it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("a.json", text), ("b.json", json.dumps([{"role": "user", "content": text}]))):
            file = Path(folder, name)
            file.write_text(content, "utf-8", "replace")
            with suppress(RectoError), open_source(file) as source:
                list(source.conversations())


def _renamed(text: str) -> None:
    before, after = LinkResolver(["note.md", "a.md"]), LinkResolver(["note.md", "b.md"])
    rewrite_links(text, find_all_links(text), "note.md", RenamePlan("a.md", "b.md", before, after))


def _server_events(text: str) -> None:
    reader, data = EventReader(), f"data: {text}\n\n".encode("utf-8", "replace")
    size = len(data) // 64 + 1
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    reader.end()


def _summarized(text: str) -> None:
    said = plain_messages([_said(text), _said(text, "assistant")], has_log=False)
    for former in ("", text, f"User: {text}"):
        Extraction(said, estimate_text, former).within(400)
        truncate(said, 400, estimate_text, former)


def _as_evidence(text: str) -> None:
    found = Evidence()
    found.add(text)
    for value in find_values(text):
        found.supports(value)
        found.states(value)
    for claim in (text, f"{text} never"):
        found.supports_claim(claim)
        found.states_claim(claim)
        found.denies(claim)


def _marked(text: str) -> None:
    known = Evidence()
    known.add("Nothing of this.")
    found, _ = mark_unsupported(text, [known])
    verified_part(found)


def _as_ledger(text: str) -> None:
    for line in (text, f"#1: {text}", f"#1 assistant: {text} → #2: {text}"):
        ledger_lines(parse_ledger([line]), 400, estimate_text)
        list(ledger_rows([line]))
    parse_place(f"user: {text}", 1)


def _set_aside(text: str) -> None:
    lines = [f"#{number}: {line}" for number, line in enumerate(text.splitlines(), 1)]
    said = parse_ledger(lines)
    find_dropped(text, said, "Nothing of this.", said, ["#1: nothing"], by_sentence=True)
    find_returning(lines, find_topic(text, [text]), said[:9], 400, estimate_text)
    add_to_contents((), lines, lambda ranges: len(ranges) < 3)
    parse_contents([text, f"#1: {text}"])
    split_returned(text)


def _verified(text: str) -> None:
    covered = CoveredMessages()
    covered.add([_said(text), Message("t", "tool", (ToolResult("c", "read", text, False),))])
    assert covered.evidence
    split_stated(text, FormerSummary(text, (f"#1: {text}",), {text: 1}).statements)


READERS: dict[str, Read] = {
    # -- notes
    "note": lambda text: Document("note.md", text).parsed,
    "front matter": lambda text: Document("note.md", f"---\na: {text}\nb: [{text}\n---\n{text}").head,
    "sections of a note": lambda text: (
        section_text(Document("note.md", text), "a"),
        block_text(Document("note.md", text), "a"),
    ),
    "answers from a note": _answer_of_note,
    "chunks of a note": lambda text: note_chunks(Document("note.md", text)),
    "days of a note": lambda text: (
        note_date(Document("note.md", text)),
        note_day(Document("note.md", text)),
        order_in_time(Document("note.md", text), text[:200], text),
    ),
    "line about a note": lambda text: document_summary(Document("note.md", text)),
    "parts of a note": _relevant_parts,
    "links": lambda text: (find_links(text), find_all_links(text)),
    "renamed links": _renamed,
    "terms of a note": lambda text: found_terms(_QUESTION, text),
    "arithmetic": is_arithmetic,
    ".gitignore": lambda text: [_parse_pattern(line) for line in text.split("\n")],
    # -- messages
    "message": lambda text: (clean(text), priority_of(_said(text)), speaker(text), print_of("user", (Text(text),))),
    "question about notes": lambda text: (parse_question(text), asks_for_overview(text), leans_on_earlier(text)),
    "mentions": lambda text: (find_mentions(text), without_mentions(text), find_imports(text)),
    "days of a question": lambda text: (
        take_days(text, date(2026, 1, 31)),
        named_days(text),
        date_labels(text, date(2026, 1, 31)),
    ),
    "terms of a question": lambda text: (query_terms(text), topic_words(text), words(text)),
    "statements to learn": lambda text: list(learnable(text)),
    "fact": lambda text: (guessed_kind(text), full_names(text), numbers_in(text), is_negated(text)),
    "facts side by side": lambda text: (may_contradict(text, f"{text} 2"), says_same(text, f"{text} 2")),
    "reworded message": lambda text: differing_parts(text, f"{text[: len(text) // 2]}b{text[len(text) // 2 :]}"),
    "defused text": lambda text: defuse(text, ("<|im_start|>", "[INST]", "<<", "[[")),
    "estimate": estimate_text,
    # -- search
    "passages": lambda text: cut_item(IndexItem(1, text), keeps_text=True),
    "sentences": lambda text: (split_sentences(text), key_sentences(text), shorten_message(text), asks_only(text)),
    # -- replies and results
    "reply in parts": _streamed,
    "reply on the page in parts": _streamed_to_page,
    "events of a server": _server_events,
    "blocks of a reply": lambda text: blocks_from([["text", text], ["call", 0, "a", "b", text]]),
    "uses of sources": lambda text: detect_uses(
        text, [], [SentSource(SourceId("rule", "a"), f"{text} b"), SentSource(SourceId("rule", "b"), "a b c d")], "a"
    ),
    "condensed result": lambda text: (
        divide(text, 400),
        question_in(text),
    ),
    "failure": lambda text: without_key(text, "sk-abcdefghijklmnop"),
    "name": lambda text: closest_key(text, {"context.threshold": "context.threshold"}),
    # -- files of a project
    "source file": lambda text: read_source_file(Rule, "a.md", f"---\ndescription: {text}\n---\n{text}".encode()),
    "plain source file": lambda text: read_source_file(Rule, "a.md", text.encode("utf-8", "replace")),
    "rule that forbids": forbids,
    "memory file": lambda text: list(imported_paths(text)),
    "file of facts": lambda text: [_facts(name, text) for name in ("a.md", "a.json", "a.txt")],
    "arguments of a server": lambda text: (
        without_secrets([text, f"--{text}"]),
        without_secret_address(f"https://{text}"),
    ),
    "imported file": _imported,
    # -- shown
    "page": lambda text: (rendered(text), rendered_note(text)),
    "code on the page": lambda text: [coloured(text, language) for language in ("python", "bash", "json")],
    "terminal": _drawn,
    "folded line": lambda text: (fold(text, 80), visible(text), shortened(text, 80)),
    "framed line": lambda text: [quote_if_framelike(line) for line in text.split("\n")],
}
# -- summaries
SUMMARY_READERS: dict[str, Read] = {
    "segments": lambda text: [segments(f"{start}{text}") for start in ("", "- ", "> ", "```\n", "a b: ", "| a | b |")],
    "fields of a result": lambda text: [readable(f"{start}{text}") for start in ("", "[", '{"a":', '["')],
    "values": find_values,
    "evidence": _as_evidence,
    "features": lambda text: read_conversation(plain_messages([_said(text), _said(text)], has_log=False)),
    "marks": _marked,
    "ledger": _as_ledger,
    "set aside": _set_aside,
    "summary without a model": _summarized,
    "verified summary": _verified,
}
_serial = count()


def _facts(name: str, text: str) -> object:
    with suppress(RectoError):
        return parse_fact_file(text, name)
    return None


def fresh(read: Read) -> Read:
    """Reads a text that no cache knows."""
    return lambda text: read(f"{text}{next(_serial)}")
