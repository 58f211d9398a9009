"""The built-in tools of a vault: read, list, search and follow links; write, rename and delete where allowed.

Every result is one JSON object; docs/vault.md lists its fields.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from recto.errors import NotFound, RectoError
from recto.sources.source import Tool
from recto.sources.tools import Arguments, LocalTool
from recto.vault.catalog import ResolvedLink
from recto.vault.document import Document, section_text
from recto.vault.links import Link, find_links, link_to_json
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

READ_DOCUMENT, FIND_DOCUMENTS, FIND_EXCERPTS = "read_document", "find_documents", "find_excerpts"
RESOLVE_WIKILINK = "resolve_wikilink"
# The most of a document that one call returns: about 5,000 tokens of English. `offset` continues from there.
PAGE_CHARS = 20_000
MAX_LISTED, MAX_LINKS, MAX_NOTES = 100, 100, 50
DEFAULT_DOCUMENTS, DEFAULT_EXCERPTS, MAX_HITS = 3, 8, 50

JsonObject = dict[str, Any]


def reading_tools(vault: Vault, vault_search: VaultSearch) -> list[LocalTool]:
    """The tools that change nothing, the most useful first: a small window drops the last ones."""
    path = _text_schema("path relative to the vault, or a note's name")
    query = _text_schema("what to look for, in words or as a question")
    return [
        _tool(
            READ_DOCUMENT,
            "Read a note of the vault.",
            lambda arguments: _read(vault, arguments),
            {
                "path": path,
                "section": _text_schema("only what stands under this heading"),
                "offset": _number_schema("0"),
            },
            "path",
        ),
        _tool(
            FIND_EXCERPTS,
            "Find passages of notes, verbatim.",
            lambda arguments: _excerpts(vault_search, arguments),
            {"query": query, "limit": _number_schema(str(DEFAULT_EXCERPTS))},
            "query",
        ),
        _tool(
            FIND_DOCUMENTS,
            "Find the notes that bear on something.",
            lambda arguments: _documents(vault_search, arguments),
            {"query": query, "limit": _number_schema(str(DEFAULT_DOCUMENTS))},
            "query",
        ),
        _tool(
            "list_documents",
            "List notes of the vault.",
            lambda arguments: _list(vault, arguments),
            {
                "folder": _text_schema("only below this folder"),
                "tag": _text_schema("only with this tag"),
                "offset": _number_schema("0"),
            },
        ),
        _tool(
            "find_backlinks",
            "Find the links that lead to a note.",
            lambda arguments: _links(vault.backlinks(_required_text(arguments, "path")), arguments, by="source"),
            {"path": path, "offset": _number_schema("0")},
            "path",
        ),
        _tool(
            "find_forward_links",
            "Find the links of a note, broken ones included.",
            lambda arguments: _links(vault.outgoing_links(_required_text(arguments, "path")), arguments, by="target"),
            {"path": path, "offset": _number_schema("0")},
            "path",
        ),
        _tool(
            RESOLVE_WIKILINK,
            "Say which file a [[link]] means.",
            lambda arguments: _resolve(vault, arguments),
            {
                "wikilink": _text_schema("with or without brackets"),
                "source": _text_schema("the note that it stands in"),
            },
            "wikilink",
        ),
    ]


def writing_tools(vault: Vault) -> list[LocalTool]:
    """The tools that change files of the user."""
    path = _text_schema("path relative to the vault, ending in .md")
    return [
        _tool(
            "write_document",
            "Write a note. One that is there is left alone unless `replace` is true.",
            lambda arguments: _write(vault, arguments),
            {"path": path, "text": _text_schema("all of it"), "replace": {"type": "boolean"}},
            "path",
            "text",
            writes=True,
        ),
        _tool(
            "rename_document",
            "Rename or move a note; links to it are rewritten.",
            lambda arguments: _rename(vault, arguments),
            {"path": path, "new_path": path},
            "path",
            "new_path",
            writes=True,
        ),
        _tool(
            "delete_document",
            "Move a note to the vault's .trash.",
            lambda arguments: {
                "path": _required_text(arguments, "path"),
                "trashed": vault.delete(_required_text(arguments, "path")),
            },
            {"path": path},
            "path",
            writes=True,
        ),
    ]


def _tool(
    name: str,
    about: str,
    run: Callable[[Arguments], JsonObject],
    properties: dict[str, Any],
    *required: str,
    writes: bool = False,
) -> LocalTool:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return LocalTool(
        Tool(name, about, schema), lambda arguments: json.dumps(run(arguments), ensure_ascii=False), writes
    )


def _text_schema(about: str) -> dict[str, str]:
    return {"type": "string", "description": about}


def _number_schema(default: str) -> dict[str, str]:
    return {"type": "integer", "description": f"default {default}"}


def _required_text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RectoError(f"{name} must be a text that is not empty")
    return value


def _whole_number(arguments: Arguments, name: str, default: int, limit: int | None = None) -> int:
    value = arguments.get(name)
    try:
        number = default if value is None else int(value)
    except (TypeError, ValueError):
        raise RectoError(f"{name} must be a whole number") from None
    return min(max(0, number), limit) if limit is not None else max(0, number)


def _read(vault: Vault, arguments: Arguments) -> JsonObject:
    path, heading = _split_link(vault, _required_text(arguments, "path"))
    document = vault.read(path)
    text, section = document.text, arguments.get("section") or heading
    if section:
        found = section_text(document, str(section))
        if found is None:
            raise NotFound(f"{document.path} has no heading {section}; it has: {_headings(document)}")
        text = found
    start = _whole_number(arguments, "offset", 0)
    page = text[start : start + PAGE_CHARS]
    answer: JsonObject = {"path": document.path, "title": document.title, "text": page}
    if start + len(page) < len(text):
        answer |= {"next_offset": start + len(page), "characters_left": len(text) - start - len(page)}
    return answer


def _split_link(vault: Vault, name: str) -> tuple[str, str]:
    """The path and the heading of a name, which may be a link: `[[Budget#Table]]`, `/Budget.md`."""
    name = name.strip()
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].partition("|")[0]
    name = name.lstrip("/")
    if "#" not in name or vault.folder.locate(name).is_file():
        return name, ""
    path, _, heading = name.partition("#")
    return path, heading


def _headings(document: Document) -> str:
    names = [heading.text for heading in document.parsed.headings[:30]]
    return ", ".join(names) or "none"


def _list(vault: Vault, arguments: Arguments) -> JsonObject:
    tag = arguments.get("tag")
    folder = str(arguments.get("folder") or "").strip("/")
    found = vault.documents(f"{folder}/" if folder else "", str(tag) if tag else None)
    if folder and not found and not vault.folder.locate(folder).is_dir():
        raise NotFound(f"there is no folder {folder} in the vault")
    start = _whole_number(arguments, "offset", 0)
    page = found[start : start + MAX_LISTED]
    answer: JsonObject = {
        "documents": [{"path": document.path, "title": document.title} for document in page],
        "total": len(found),
    }
    return answer | {"next_offset": start + len(page)} if start + len(page) < len(found) else answer


def _documents(vault_search: VaultSearch, arguments: Arguments) -> JsonObject:
    found = vault_search.find_documents(
        _required_text(arguments, "query"),
        _whole_number(arguments, "limit", DEFAULT_DOCUMENTS, MAX_HITS) or DEFAULT_DOCUMENTS,
    )
    hits = [{"path": hit.path, "title": hit.title, "score": hit.score} for hit in found.hits]
    return _with_note({"documents": hits}, found.warning)


def _excerpts(vault_search: VaultSearch, arguments: Arguments) -> JsonObject:
    found = vault_search.find_excerpts(
        _required_text(arguments, "query"),
        _whole_number(arguments, "limit", DEFAULT_EXCERPTS, MAX_HITS) or DEFAULT_EXCERPTS,
    )
    hits = [
        {"path": hit.path, "heading": hit.heading, "line": hit.line, "text": hit.text, "score": hit.score}
        for hit in found.hits
    ]
    return _with_note({"excerpts": hits}, found.warning)


def _with_note(answer: JsonObject, note: str) -> JsonObject:
    return answer | {"note": note} if note else answer


def _resolve(vault: Vault, arguments: Arguments) -> JsonObject:
    text = _required_text(arguments, "wikilink")
    found = find_links(text) or find_links(f"[[{text.strip('[]')}]]")
    if not found:
        raise NotFound(f"{text} is not a wikilink")
    source = arguments.get("source")
    return _resolve_link(vault, found[0], str(source) if source else None)


def _resolve_link(vault: Vault, link: Link, source: str | None) -> JsonObject:
    """The target of a link. Raises NotFound with similar names."""
    link = vault.disambiguate(link, source)
    path = vault.resolve(link, source)
    if path is None:
        near = vault.closest(link.target)
        raise NotFound(
            f"{link.wikilink} leads to no document of the vault"
            + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    return dict(link_to_json(link, path))


def _links(found: Sequence[ResolvedLink], arguments: Arguments, *, by: str) -> JsonObject:
    start = _whole_number(arguments, "offset", 0)
    links = [
        {
            "wikilink": link.link.wikilink,
            "path": link.source if by == "source" else link.path,
            "line": link.line,
            "context": link.context,
        }
        for link in found[start : start + MAX_LINKS]
    ]
    own = (found[0].path if by == "source" else found[0].source) if found else None
    answer: JsonObject = {"path": own or _required_text(arguments, "path"), "links": links, "total": len(found)}
    return answer | {"next_offset": start + len(links)} if start + len(links) < len(found) else answer


def _write(vault: Vault, arguments: Arguments) -> JsonObject:
    path, text = _required_text(arguments, "path"), arguments.get("text")
    if not isinstance(text, str):
        raise RectoError("text must be a text")
    existing = vault.find_existing(path)
    if existing and (arguments.get("replace") is not True or existing != path):
        raise RectoError(f"{existing} already exists; set replace to true, with this path, to overwrite it")
    return {"path": vault.write(path, text).path, "characters": len(text)}


def _rename(vault: Vault, arguments: Arguments) -> JsonObject:
    renamed = vault.rename(_required_text(arguments, "path"), _required_text(arguments, "new_path"))
    notes = sorted(renamed.links)
    answer: JsonObject = {
        "path": renamed.path,
        "links_rewritten": sum(renamed.links.values()),
        "notes": notes[:MAX_NOTES],
    }
    return answer | {"more_notes": len(notes) - MAX_NOTES} if len(notes) > MAX_NOTES else answer
