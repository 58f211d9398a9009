"""The built-in tools of a vault: read, list, search and follow links; if allowed, write, rename and delete.

Every result is one JSON object; docs/vault.md lists its fields.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from recto.errors import NotFound, RectoError
from recto.sources.source import Tool
from recto.sources.tools import Arguments, LocalTool
from recto.vault.catalog import ResolvedLink
from recto.vault.document import section_text
from recto.vault.links import find_links, link_to_json
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

READ_DOCUMENT, FIND_DOCUMENTS, FIND_EXCERPTS = "read_document", "find_documents", "find_excerpts"
RESOLVE_WIKILINK = "resolve_wikilink"
# Most characters of a document per call: about 5,000 tokens of English. `offset` continues from there.
PAGE_CHARS = 20_000
MAX_LISTED, MAX_LINKS, MAX_NOTES, MAX_HEADINGS = 100, 100, 50, 30
DEFAULT_DOCUMENTS, DEFAULT_EXCERPTS, MAX_HITS = 3, 8, 50

JsonObject = dict[str, Any]


def reading_tools(vault: Vault, search: VaultSearch) -> list[LocalTool]:
    """The read-only tools, most useful first: a small window drops the last ones."""
    path = {"path": "path relative to the vault, or a note's name"}
    query = {"query": "what to look for, in words or as a question"}
    link = {"wikilink": "with or without brackets"}
    section, folder, tag = "only what stands under this heading", "only below this folder", "only with this tag"
    links, note = "Find the links of a note, broken ones included.", "the note that it stands in"
    excerpts, documents = partial(_excerpts, search), partial(_documents, search)
    backlinks, forward_links = partial(_links, vault.backlinks, "source"), partial(_links, vault.outgoing_links, "path")
    listed = partial(_list, vault)
    return [
        _tool(READ_DOCUMENT, "Read a note of the vault.", partial(_read, vault), path, section=section, offset=0),
        _tool(FIND_EXCERPTS, "Find passages of notes, verbatim.", excerpts, query, limit=DEFAULT_EXCERPTS),
        _tool(FIND_DOCUMENTS, "Find the notes that bear on something.", documents, query, limit=DEFAULT_DOCUMENTS),
        _tool("list_documents", "List notes of the vault.", listed, {}, folder=folder, tag=tag, offset=0),
        _tool("find_backlinks", "Find the links that lead to a note.", backlinks, path, offset=0),
        _tool("find_forward_links", links, forward_links, path, offset=0),
        _tool(RESOLVE_WIKILINK, "Say which file a [[link]] means.", partial(_resolve, vault), link, source=note),
    ]


def writing_tools(vault: Vault) -> list[LocalTool]:
    path = {"path": "path relative to the vault, ending in .md"}
    text, new_path = path | {"text": "all of it"}, path | {"new_path": path["path"]}
    about = "Write a note. One that is there is left alone unless `replace` is true."
    tools = [
        _tool("write_document", about, partial(_write, vault), text, replace=True),
        _tool(
            "rename_document", "Rename or move a note; links to it are rewritten.", partial(_rename, vault), new_path
        ),
        _tool("delete_document", "Move a note to the vault's .trash.", partial(_delete, vault), path),
    ]
    return [replace(tool, writes=True) for tool in tools]


def _tool(
    name: str, about: str, run: Callable[[Arguments], JsonObject], required: Mapping[str, str], **optional: str | int
) -> LocalTool:
    """`required` texts have a description, `optional` ones too; numbers have their default."""
    properties: JsonObject = {}
    for each, kind in (*required.items(), *optional.items()):
        number = {"type": "boolean"} if kind is True else {"type": "integer", "description": f"default {kind}"}
        properties[each] = {"type": "string", "description": kind} if isinstance(kind, str) else number
    schema: JsonObject = {"type": "object", "properties": properties} | ({"required": [*required]} if required else {})
    return LocalTool(Tool(name, about, schema), lambda arguments: json.dumps(run(arguments), ensure_ascii=False))


# -- arguments and pages


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RectoError(f"{name} must be a text that is not empty")
    return value


def _number(arguments: Arguments, name: str) -> int:
    value = arguments.get(name)
    try:
        return 0 if value is None else max(0, int(value))
    except (TypeError, ValueError, OverflowError):
        raise RectoError(f"{name} must be a whole number") from None


def _page(items: Sequence[Any], arguments: Arguments, most: int) -> tuple[Sequence[Any], JsonObject]:
    """The requested part, and the start of the next one."""
    start = _number(arguments, "offset")
    page = items[start : start + most]
    end = start + len(page)
    return page, {"next_offset": end} if end < len(items) else {}


def _fields(value: object, *names: str) -> JsonObject:
    return {name: getattr(value, name) for name in names}


# -- reading


def _read(vault: Vault, arguments: Arguments) -> JsonObject:
    path, heading = _split_link(vault, _text(arguments, "path"))
    document = vault.read(path)
    text: str | None = document.text
    if section := arguments.get("section") or heading:
        text = section_text(document, str(section))
    if text is None:
        there = ", ".join(each.text for each in document.parsed.headings[:MAX_HEADINGS]) or "none"
        raise NotFound(f"{document.path} has no heading {section}; it has: {there}")
    page, more = _page(text, arguments, PAGE_CHARS)
    if more:
        more["characters_left"] = len(text) - more["next_offset"]
    return {"path": document.path, "title": document.title, "text": page} | more


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


def _list(vault: Vault, arguments: Arguments) -> JsonObject:
    tag = arguments.get("tag")
    folder = str(arguments.get("folder") or "").strip("/")
    found = vault.documents(f"{folder}/" if folder else "", str(tag) if tag else None)
    if folder and not found and not vault.folder.locate(folder).is_dir():
        raise NotFound(f"there is no folder {folder} in the vault")
    page, more = _page(found, arguments, MAX_LISTED)
    return {"documents": [_fields(each, "path", "title") for each in page], "total": len(found)} | more


def _documents(search: VaultSearch, arguments: Arguments) -> JsonObject:
    limit = min(_number(arguments, "limit"), MAX_HITS) or DEFAULT_DOCUMENTS
    found = search.find_documents(_text(arguments, "query"), limit)
    return _hits("documents", found.hits, found.warning, "path", "title", "score")


def _excerpts(search: VaultSearch, arguments: Arguments) -> JsonObject:
    limit = min(_number(arguments, "limit"), MAX_HITS) or DEFAULT_EXCERPTS
    found = search.find_excerpts(_text(arguments, "query"), limit)
    return _hits("excerpts", found.hits, found.warning, "path", "heading", "line", "text", "score")


def _hits(kind: str, hits: Sequence[object], warning: str | None, *names: str) -> JsonObject:
    return {kind: [_fields(hit, *names) for hit in hits]} | ({"note": warning} if warning else {})


def _links(find: Callable[[str], Sequence[ResolvedLink]], end: str, arguments: Arguments) -> JsonObject:
    """List links: `end` is the listed end of each, `source` or `path`; the other end is the named note."""
    named, other = _text(arguments, "path"), "path" if end == "source" else "source"
    found = find(named)
    page, more = _page(found, arguments, MAX_LINKS)
    links = [
        {"wikilink": each.link.wikilink, "path": getattr(each, end), **_fields(each, "line", "context")}
        for each in page
    ]
    return {"path": (getattr(found[0], other) if found else "") or named, "links": links, "total": len(found)} | more


def _resolve(vault: Vault, arguments: Arguments) -> JsonObject:
    text = _text(arguments, "wikilink")
    found = find_links(text) or find_links(f"[[{text.strip('[]')}]]")
    if not found:
        raise NotFound(f"{text} is not a wikilink")
    source = str(arguments.get("source") or "") or None
    link = found[0]
    if (path := vault.resolve(link, source)) is None:
        near = vault.closest(link.target)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound(f"{link.wikilink} leads to no document of the vault{hint}")
    return dict(link_to_json(link, path))


# -- writing


def _write(vault: Vault, arguments: Arguments) -> JsonObject:
    path, text = _text(arguments, "path"), arguments.get("text")
    if not isinstance(text, str):
        raise RectoError("text must be a text")
    existing = vault.find_existing(path)
    if existing and (arguments.get("replace") is not True or existing != path):
        raise RectoError(f"{existing} already exists; set replace to true, with this path, to overwrite it")
    return {"path": vault.write(path, text).path, "characters": len(text)}


def _rename(vault: Vault, arguments: Arguments) -> JsonObject:
    renamed = vault.rename(_text(arguments, "path"), _text(arguments, "new_path"))
    notes, count = sorted(renamed.links), sum(renamed.links.values())
    more = {"more_notes": len(notes) - MAX_NOTES} if len(notes) > MAX_NOTES else {}
    return {"path": renamed.path, "links_rewritten": count, "notes": notes[:MAX_NOTES]} | more


def _delete(vault: Vault, arguments: Arguments) -> JsonObject:
    path = _text(arguments, "path")
    return {"path": path, "trashed": vault.delete(path)}
