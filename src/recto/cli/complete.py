"""Completion of what points into files while it is typed: [[links]] to notes and their headings, @paths, and the note
behind `/document`.

Whatever goes wrong with the vault, there is nothing to complete, and typing goes on.
"""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.cli.fuzzy import Fuzzy
from recto.cli.show import shortened, visible
from recto.errors import RectoError
from recto.vault.document import name_of
from recto.vault.folder import Folder, is_note
from recto.vault.links import Link, find_links, split
from recto.vault.names import fold

if TYPE_CHECKING:
    from recto.vault.folder import Entry
    from recto.vault.vault import Vault

MOST = 50
# A folder with more files than this is no place to pick one by its name.
MOST_FILES = 50_000
# What was looked up is looked up again after this, behind; until then the names as they were do.
FRESH_S = 3.0
META_WIDTH = 40

_LINK = re.compile(r"\[\[((?:(?!\]\]|\[\[)[^\n])*)$")
_MENTION = re.compile(r"(?:^|(?<=[\s(]))@(?:\"([^\"\n]*)|([^\W\d_][^\s\"`<>|@]*))$")
# A rule or a reference is mentioned, no file.
_SOURCE = re.compile(r"@(rule|ref|reference):", re.IGNORECASE)
_NEEDS_QUOTES = re.compile(r"[\s\"`<>|@]")
# What would end or part a link; headings are found without such signs.
_PARTING = re.compile(r"[\[\]#^|]+")
# What cannot stand in a line that is typed; what not in a name that is linked; and what has to be tried in a link.
_UNTYPED = re.compile("^\\s|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNLINKED = re.compile(r"[|^]")
_ODD = re.compile(r"[\[\]#`%<\\]|\s$")
_OPENED = re.compile(r"/document +(\S[^\n]*)?")

OpenVault = Callable[[], "Vault | None"]


@dataclass(frozen=True, slots=True)
class Choice:
    key: str
    """What is typed is compared with this."""
    insert: str
    shown: str
    meta: str = ""


LookUp = Callable[["Vault"], Iterable[Choice]]


class Known:
    """Choices, and which of them fit best what is typed."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = choices
        self._fuzzy = Fuzzy([choice.key for choice in choices])

    def best(self, typed: str) -> list[Choice]:
        return [self._choices[number] for number in self._fuzzy.best(fold(typed), MOST)]


class Kept:
    """Choices that take a while to look up: the first time that is waited for, or for as long as `patience_s` says;
    later they are renewed behind."""

    def __init__(self, look_up: Callable[[], Iterable[Choice]], patience_s: float | None = None) -> None:
        self._look_up, self._patience_s = look_up, patience_s
        self._known = Known(())
        self._since: float | None = None
        self._fresh_s = FRESH_S
        self._lock = threading.Lock()

    def best(self, typed: str) -> list[Choice]:
        is_old = self._since is None or time.monotonic() - self._since > self._fresh_s
        if is_old and not self._lock.locked():
            behind = threading.Thread(target=self._renew, name="recto-complete", daemon=True)
            behind.start()
            if self._since is None:
                behind.join(self._patience_s)
        return self._known.best(typed)

    def _renew(self) -> None:
        with self._lock:
            began = time.monotonic()
            try:
                choices = tuple(self._look_up())
            except RectoError:
                choices = ()
            self._known, self._since = Known(choices), time.monotonic()
            # a folder that takes long to go through is not gone through all the time
            self._fresh_s = max(FRESH_S, 10 * (self._since - began))


# -- [[links]], /document


class LinkCompleter(Completer):
    """Names of notes in links, and their paths behind `/document`."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._kept: dict[tuple[Path, LookUp], Kept] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        link = _LINK.search(document.current_line_before_cursor)
        opened = None if link else _OPENED.fullmatch(document.text_before_cursor)
        is_typed = opened is not None or (link is not None and "|" not in link[1])
        vault = self._vault() if is_typed else None
        if vault and opened:
            typed = opened[1] or ""
            yield from (completion(choice, typed, "") for choice in self._best(path_choices, vault, typed))
        elif vault and link:
            yield from self._linked(vault, link[1], _closing(document.text_after_cursor))

    def _linked(self, vault: "Vault", typed: str, closing: str) -> Iterator[Completion]:
        name, sign, heading = typed.rpartition("#")
        for choice in self._best(name_choices, vault, typed.lstrip()):
            if not sign or "#" in choice.key:
                yield completion(choice, typed, closing)
        for choice in _headings(vault, name, heading) if sign else ():
            yield completion(choice, heading, closing)

    def _best(self, look_up: LookUp, vault: "Vault", typed: str) -> list[Choice]:
        key = (vault.root, look_up)
        if key not in self._kept:
            self._kept[key] = Kept(lambda: look_up(vault))
        return self._kept[key].best(typed)


def name_choices(vault: "Vault") -> Iterator[Choice]:
    """Every file by the shortest link that means it, what was changed last first; then notes by their aliases."""
    paths = [entry.path for entry in sorted(_files(vault.folder), key=lambda entry: -entry.mtime_ns)]
    names = {path: name_of(path) if is_note(path) else path.rpartition("/")[2] for path in paths}
    bearers = Counter(fold(name) for name in names.values())
    links = {path: name if bearers[fold(name)] == 1 else path.removesuffix(".md") for path, name in names.items()}
    links = {path: link for path, link in links.items() if not _UNLINKED.search(link) and _leads(vault, link, path)}
    for path, link in links.items():
        folder = path.rpartition("/")[0]
        yield Choice(fold(link), link, link, f"{folder}/" if folder else "")
    for note in vault.documents():
        for alias in note.aliases if note.path in links else ():
            link, caption = links[note.path], " ".join(_PARTING.sub(" ", alias).split())
            if caption and _leads(vault, insert := f"{link}|{caption}", note.path):
                yield Choice(fold(alias), insert, alias, f"→ {link}")


def _leads(vault: "Vault", inside: str, path: str) -> bool:
    """Whether a link with this inside it is one, and leads there."""
    if _UNTYPED.search(inside):
        return False
    if not _ODD.search(inside):
        return True
    found = find_links(f"[[{inside}]]")
    return [each.inside for each in found] == [inside] and vault.resolve(found[0]) == path


def path_choices(vault: "Vault") -> Iterator[Choice]:
    """Notes by their paths, what was changed last first."""
    for entry in sorted(_files(vault.folder), key=lambda entry: -entry.mtime_ns):
        if is_note(entry.path) and not _UNTYPED.search(entry.path):
            yield Choice(fold(entry.path), entry.path, entry.path)


def _headings(vault: "Vault", name: str, typed: str) -> list[Choice]:
    """The headings of the note that is named, in their order while nothing is typed."""
    try:
        path = vault.resolve(Link(f"[[{name}]]", *split(name))) if name.strip("# ") else None
        headings = vault.read(path).parsed.headings if path and is_note(path) else ()
    except RectoError:
        return []
    plain = [" ".join(_PARTING.sub(" ", heading.text).split()) for heading in headings]
    choices = [
        Choice(fold(text), text, text, "#" * heading.level)
        for text, heading in zip(plain, headings, strict=True)
        if text
    ]
    return Known(choices).best(typed.lstrip())


def _closing(after: str) -> str:
    return "]]"[len(after[:2]) - len(after[:2].lstrip("]")) :]


# -- @paths


class FileCompleter(Completer):
    def __init__(self, vault: OpenVault, project: Path | None) -> None:
        self._vault, self._project = vault, project
        self._kept: dict[tuple[Path, ...], Kept] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = _MENTION.search(document.current_line_before_cursor)
        if typed is None or _SOURCE.match(typed[0]):
            return
        quoted, bare = typed.groups()
        said = quoted if bare is None else bare
        roots = self._roots()
        if roots not in self._kept:
            self._kept[roots] = Kept(lambda: file_choices(roots))
        for choice in self._kept[roots].best(said) if said[:1].isalpha() else ():
            yield completion(choice, typed[0][1:], "")

    def _roots(self) -> tuple[Path, ...]:
        vault = self._vault()
        found = (self._project, vault.root if vault else None)
        return tuple(dict.fromkeys(root.resolve() for root in found if root))


def file_choices(roots: Sequence[Path]) -> Iterator[Choice]:
    """Files below the roots as they are written behind an `@`; what lies in both is named from the nearer one."""
    known: dict[Path, str] = {}
    for root in roots:
        for entry in _files(Folder(root)):
            place = root / entry.path
            if place not in known or len(entry.path) < len(known[place]):
                known[place] = entry.path
    for path in dict.fromkeys(known.values()):
        if '"' not in path:
            yield Choice(fold(path), f'"{path}"' if _NEEDS_QUOTES.search(path) else path, path)


def _files(folder: Folder) -> Iterator["Entry"]:
    return islice(folder.walk(), MOST_FILES)


def completion(choice: Choice, typed: str, closing: str) -> Completion:
    return Completion(
        choice.insert + closing,
        start_position=-len(typed),
        display=visible(choice.shown),
        display_meta=shortened(choice.meta, META_WIDTH),
    )
