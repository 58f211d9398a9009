"""Tools over a vault: read, list, find, follow links; write, rename and delete only where the user allowed it.

Every result is one JSON object; docs/vault.md says which fields it has.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recto.errors import NotFound, RectoError
from recto.sources.source import Tool
from recto.sources.tools import Runnable
from recto.vault.catalog import Found
from recto.vault.document import Document, section_text
from recto.vault.library import Library
from recto.vault.links import Link, find_links, link_to_json
from recto.vault.vault import Vault

READ, FIND_DOCUMENTS, FIND_EXCERPTS = "read_document", "find_documents", "find_excerpts"
RESOLVE = "resolve_wikilink"
# One page of a document for one call: about 5,000 tokens of English. The model asks for the rest with `offset`.
PAGE = 20_000
LISTED, MOST_LINKS, MOST_NOTES = 100, 100, 50
DOCUMENTS, EXCERPTS, MOST_FOUND = 3, 8, 50

Arguments = Mapping[str, Any]
Answer = dict[str, Any]


def reading_tools(vault: Vault, library: Library) -> list[Runnable]:
    """Those that change nothing, the most useful first: in a small window the last ones go."""
    path = _text("path relative to the vault, or a note's name")
    query = _text("what to look for, in words or as a question")
    return [
        _tool(
            READ,
            "Read a note of the vault.",
            lambda given: _read(vault, given),
            {"path": path, "section": _text("only what stands under this heading"), "offset": _number("0")},
            "path",
        ),
        _tool(
            FIND_EXCERPTS,
            "Find passages of notes, verbatim.",
            lambda given: _excerpts(library, given),
            {"query": query, "limit": _number(str(EXCERPTS))},
            "query",
        ),
        _tool(
            FIND_DOCUMENTS,
            "Find the notes that bear on something.",
            lambda given: _documents(library, given),
            {"query": query, "limit": _number(str(DOCUMENTS))},
            "query",
        ),
        _tool(
            "list_documents",
            "List notes of the vault.",
            lambda given: _list(vault, given),
            {"folder": _text("only below this folder"), "tag": _text("only with this tag"), "offset": _number("0")},
        ),
        _tool(
            "find_backlinks",
            "Find the links that lead to a note.",
            lambda given: _links(vault.backlinks(_said(given, "path")), given, by="source"),
            {"path": path, "offset": _number("0")},
            "path",
        ),
        _tool(
            "find_forward_links",
            "Find the links of a note, broken ones included.",
            lambda given: _links(vault.forward(_said(given, "path")), given, by="target"),
            {"path": path, "offset": _number("0")},
            "path",
        ),
        _tool(
            RESOLVE,
            "Say which file a [[link]] means.",
            lambda given: _resolve(vault, given),
            {"wikilink": _text("with or without brackets"), "source": _text("the note that it stands in")},
            "wikilink",
        ),
    ]


def writing_tools(vault: Vault) -> list[Runnable]:
    """Those that change files of the user."""
    path = _text("path relative to the vault, ending in .md")
    return [
        _tool(
            "write_document",
            "Write a note. One that is there is left alone unless `replace` is true.",
            lambda given: _write(vault, given),
            {"path": path, "text": _text("all of it"), "replace": {"type": "boolean"}},
            "path",
            "text",
            writes=True,
        ),
        _tool(
            "rename_document",
            "Rename or move a note; links to it are rewritten.",
            lambda given: _rename(vault, given),
            {"path": path, "new_path": path},
            "path",
            "new_path",
            writes=True,
        ),
        _tool(
            "delete_document",
            "Move a note to the vault's .trash.",
            lambda given: {"path": _said(given, "path"), "trashed": vault.delete(_said(given, "path"))},
            {"path": path},
            "path",
            writes=True,
        ),
    ]


def _tool(
    name: str,
    about: str,
    run: Callable[[Arguments], Answer],
    given: dict[str, Any],
    *required: str,
    writes: bool = False,
) -> Runnable:
    schema: dict[str, Any] = {"type": "object", "properties": given}
    if required:
        schema["required"] = list(required)
    return Runnable(Tool(name, about, schema), lambda arguments: json.dumps(run(arguments), ensure_ascii=False), writes)


def _text(about: str) -> dict[str, str]:
    return {"type": "string", "description": about}


def _number(default: str) -> dict[str, str]:
    return {"type": "integer", "description": f"default {default}"}


def _said(given: Arguments, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RectoError(f"{name} must be a text that is not empty")
    return value


def _whole(given: Arguments, name: str, default: int, most: int | None = None) -> int:
    value = given.get(name)
    try:
        number = default if value is None else int(value)
    except (TypeError, ValueError):
        raise RectoError(f"{name} must be a whole number") from None
    return min(max(0, number), most) if most is not None else max(0, number)


def _read(vault: Vault, given: Arguments) -> Answer:
    path, _, heading = _parted(vault, _said(given, "path"))
    document = vault.read(path)
    text, section = document.text, given.get("section") or heading
    if section:
        found = section_text(document, str(section))
        if found is None:
            raise NotFound(f"{document.path} has no heading {section}; it has: {_headings(document)}")
        text = found
    start = _whole(given, "offset", 0)
    page = text[start : start + PAGE]
    answer: Answer = {"path": document.path, "title": document.title, "text": page}
    if start + len(page) < len(text):
        answer |= {"next_offset": start + len(page), "characters_left": len(text) - start - len(page)}
    return answer


def _parted(vault: Vault, named: str) -> tuple[str, str, str]:
    """Path and heading of what may be a link: `[[Budget#Table]]`, `/Budget.md`."""
    named = named.strip()
    if named.startswith("[[") and named.endswith("]]"):
        named = named[2:-2].partition("|")[0]
    named = named.lstrip("/")
    return (named, "", "") if "#" not in named or vault.folder.inside(named).is_file() else named.partition("#")


def _headings(document: Document) -> str:
    names = [heading.text for heading in document.parsed.headings[:30]]
    return ", ".join(names) or "none"


def _list(vault: Vault, given: Arguments) -> Answer:
    tag = given.get("tag")
    folder = str(given.get("folder") or "").strip("/")
    found = vault.documents(f"{folder}/" if folder else "", str(tag) if tag else None)
    if folder and not found and not vault.folder.inside(folder).is_dir():
        raise NotFound(f"there is no folder {folder} in the vault")
    start = _whole(given, "offset", 0)
    some = found[start : start + LISTED]
    answer: Answer = {"documents": [{"path": each.path, "title": each.title} for each in some], "total": len(found)}
    return answer | {"next_offset": start + len(some)} if start + len(some) < len(found) else answer


def _documents(library: Library, given: Arguments) -> Answer:
    found = library.find_documents(_said(given, "query"), _whole(given, "limit", DOCUMENTS, MOST_FOUND) or DOCUMENTS)
    hits = [{"path": hit.path, "title": hit.title, "score": hit.score} for hit in found.hits]
    return _noted({"documents": hits}, found.note)


def _excerpts(library: Library, given: Arguments) -> Answer:
    found = library.find_excerpts(_said(given, "query"), _whole(given, "limit", EXCERPTS, MOST_FOUND) or EXCERPTS)
    hits = [
        {"path": hit.path, "heading": hit.heading, "line": hit.line, "text": hit.text, "score": hit.score}
        for hit in found.hits
    ]
    return _noted({"excerpts": hits}, found.note)


def _noted(answer: Answer, note: str) -> Answer:
    return answer | {"note": note} if note else answer


def _resolve(vault: Vault, given: Arguments) -> Answer:
    named = _said(given, "wikilink")
    found = find_links(named) or find_links(f"[[{named.strip('[]')}]]")
    if not found:
        raise NotFound(f"{named} is no wikilink")
    source = given.get("source")
    return _resolved(vault, found[0], str(source) if source else None)


def _resolved(vault: Vault, link: Link, source: str | None) -> Answer:
    """What a link means; NotFound with what may be meant."""
    link = vault.settle(link, source)
    path = vault.resolve(link, source)
    if path is None:
        near = vault.closest(link.target)
        raise NotFound(
            f"{link.wikilink} leads to no document of the vault"
            + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    return dict(link_to_json(link, path))


def _links(found: Sequence[Found], given: Arguments, *, by: str) -> Answer:
    start = _whole(given, "offset", 0)
    links = [
        {
            "wikilink": each.link.wikilink,
            "path": each.source if by == "source" else each.path,
            "line": each.line,
            "context": each.context,
        }
        for each in found[start : start + MOST_LINKS]
    ]
    own = (found[0].path if by == "source" else found[0].source) if found else None
    answer: Answer = {"path": own or _said(given, "path"), "links": links, "total": len(found)}
    return answer | {"next_offset": start + len(links)} if start + len(links) < len(found) else answer


def _write(vault: Vault, given: Arguments) -> Answer:
    path, text = _said(given, "path"), given.get("text")
    if not isinstance(text, str):
        raise RectoError("text must be a text")
    there = vault.twin(path)
    if there and (given.get("replace") is not True or there != path):
        raise RectoError(f"{there} is there already; set replace to true, with this path, to write all of it anew")
    return {"path": vault.write(path, text).path, "characters": len(text)}


def _rename(vault: Vault, given: Arguments) -> Answer:
    renamed = vault.rename(_said(given, "path"), _said(given, "new_path"))
    notes = sorted(renamed.links)
    answer: Answer = {"path": renamed.path, "links_rewritten": sum(renamed.links.values()), "notes": notes[:MOST_NOTES]}
    return answer | {"more_notes": len(notes) - MOST_NOTES} if len(notes) > MOST_NOTES else answer
