"""Facts in files: reads Markdown and JSON, and writes both. Knows texts, not where they come from."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from recto.errors import Invalid
from recto.search.passages import split_sentences
from recto.sentences.words import phrases
from recto.store.fact import FACT_KINDS, FactKind, MemoryFact, checked_text, said_by
from recto.vault.links import front_matter, mask_code

FORMAT, VERSION = "recto-facts", 1
# Tasks of a list are not facts, nor are items that depend on the one above.
_ITEM = re.compile(r"^\s{0,12}(?:[-*+•]|\d{1,3}[.)])\s+(?!\[[ xX]\])(.+)$")
_NO_STATEMENT = re.compile(r"^\s*(?:#{1,6}\s|[-*+•]\s+\[[ xX]\]|[|>]|[-*_=]{3,}\s*$|<)")
# The second form takes the rest of a line in which no mark closes, to avoid a search from every mark.
_LAST_MARKS = re.compile(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}|[*_`]{1,3}(?=\S).*")


class ReadFact(Struct, frozen=True):
    text: str
    kind: FactKind | None = None
    created: str = ""
    confidence: float = 1.0
    learned_by: str = ""
    """Set for a fact that Recto wrote to the file and that is not in the user's words."""


def parse_fact_file(text: str, name: str) -> list[ReadFact]:
    """The facts of a JSON or Markdown text. Raises Invalid, naming the place of anything that is not a fact."""
    return list(_from_json(text, name) if name.lower().endswith(".json") else _from_markdown(text, name))


def _from_json(text: str, name: str) -> Iterator[ReadFact]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise Invalid(f"{name} is not valid JSON: {why}", file=name) from why
    if isinstance(data, dict):
        if data.get("format") == FORMAT and data.get("version", 0) > VERSION:
            raise Invalid(f"{name} was written by a newer Recto; upgrade Recto to import it", file=name)
        data = next((data[key] for key in ("facts", "memories", "results") if isinstance(data.get(key), list)), None)
    if not isinstance(data, list):
        raise Invalid(f"{name} does not contain a list of facts", file=name)
    for place, each in enumerate(data, 1):
        yield _fact(each, f"{name}: fact {place}")


def _fact(each: Any, where: str) -> ReadFact:
    if isinstance(each, str):
        return ReadFact(_checked(each, where))
    if not isinstance(each, Mapping):
        raise Invalid(f"{where} is neither a string nor an object")
    text = next((each[key] for key in ("text", "memory", "content", "fact") if isinstance(each.get(key), str)), None)
    if text is None:
        raise Invalid(f"{where} has no text")
    kind = each.get("kind")
    confidence = each.get("confidence", 1.0)
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    created = each.get("created") or each.get("created_at") or ""
    return ReadFact(
        _checked(text, where),
        kind if kind in FACT_KINDS else None,
        created if isinstance(created, str) and re.match(r"\d{4}-\d\d-\d\d", created) else "",
        float(confidence) if is_number else 1.0,
        by if isinstance(by := each.get("learned_by"), str) and said_by(by) != "user" else "",
    )


def _from_markdown(text: str, name: str) -> Iterator[ReadFact]:
    """Yield list items and the sentences of paragraphs. Skips code, tables, quotations and headings."""
    front = front_matter(text)
    masked = mask_code(text)[front[2] if front else 0 :]
    paragraph: list[str] = []
    for number, line in enumerate((*masked.split("\n"), ""), 1):
        item = _ITEM.match(line)
        if item or not line.strip() or _NO_STATEMENT.match(line):
            yield from _sentences(paragraph, name)
            paragraph = []
        if item and not phrases("leaning").match(item.group(1)):
            yield ReadFact(_checked(_unmarked(item.group(1)), f"{name}: line {number}"))
        elif not item and line.strip() and not _NO_STATEMENT.match(line):
            paragraph.append(line.strip())


def _sentences(lines: Iterable[str], name: str) -> Iterator[ReadFact]:
    for sentence in split_sentences(" ".join(lines)):
        if len(sentence.split()) > 1 and not sentence.endswith(("?", ":")):
            yield ReadFact(_checked(_unmarked(sentence), name))


def _unmarked(text: str) -> str:
    return _LAST_MARKS.sub(lambda found: found[1] or found[0], text)


def _checked(text: str, where: str) -> str:
    try:
        return checked_text(text)
    except Invalid as why:
        raise Invalid(f"{where}: {why.message}") from None


def fact_to_json(fact: MemoryFact) -> dict[str, Any]:
    return {
        "number": fact.number,
        "text": fact.text,
        "kind": fact.kind,
        "created": fact.created,
        "learned_by": fact.learned_by,
        "said_by": fact.said_by,
        "conversation": fact.conversation,
        "message": fact.message,
        "last_used": fact.last_used,
        "uses": fact.uses,
        "confidence": fact.confidence,
        "replaced_by": fact.replaced_by,
        "topic": fact.topic,
        "history": [{"text": each.text, "until": each.until} for each in fact.history],
        **({"note": asdict(fact.note)} if fact.note else {}),
    }


def facts_to_json(facts: Iterable[MemoryFact]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "facts": [fact_to_json(fact) for fact in facts]}


def facts_to_markdown(facts: Iterable[MemoryFact]) -> str:
    """Facts in force by kind, in a form that can be imported. Facts only a model stated are quoted, so not imported."""
    by_kind: dict[str, list[MemoryFact]] = {}
    noted = list[MemoryFact]()
    for fact in facts:
        if fact.replaced_by is None and not fact.is_confirmed:
            noted.append(fact)
        elif fact.replaced_by is None:
            by_kind.setdefault(fact.kind, []).append(fact)
    parts = ["# Facts"]
    for kind in FACT_KINDS:
        if known := by_kind.get(kind):
            parts.append(f"## {kind.capitalize()}\n\n" + "\n".join(f"- {fact.text}" for fact in known))
    if noted:
        parts.append("## Not confirmed\n\n" + "\n".join(f"> - {fact.marked_text}" for fact in noted))
    return "\n\n".join(parts) + "\n"
