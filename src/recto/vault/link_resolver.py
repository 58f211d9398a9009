"""LinkResolver: finds the file that a link means, by Obsidian's rules, and similar names. Reads no file."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import takewhile

from recto.vault.links import Link, find_links, split_link

# The least similarity of a suggestion.
_MIN_SIMILARITY = 0.5
NOTE_ENDINGS = (".md", ".markdown")
SEPARATOR = re.compile(r"\\?[#^|]")


def fold_name(text: str) -> str:
    """Equal for all spellings that count as one, whatever the case and the composition of accents."""
    if text.isascii():
        return text.lower()
    return _compose(_compose(text).lower())


def link_key(target: str) -> str:
    """The key of a link: the last name in it. Aliases give links to one note different keys."""
    return _strip_note_ending(fold_name(target).rstrip("/").rpartition("/")[2])


class LinkResolver:
    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._folded_paths: dict[str, str] = {}
        """Each path, folded and without `.md`."""
        self._by_name: dict[str, list[str]] = {}
        self._by_alias: dict[str, list[str]] = {}
        self._aliases: dict[str, tuple[str, ...]] = {}
        for path in paths:
            self.add(path)

    def __contains__(self, path: object) -> bool:
        return path in self._folded_paths

    def __len__(self) -> int:
        return len(self._folded_paths)

    def add(self, path: str, aliases: Sequence[str] = ()) -> None:
        if path in self._folded_paths:
            self.remove(path)
        folded_path = self._folded_paths[path] = _strip_note_ending(fold_name(path))
        self._by_name.setdefault(folded_path.rpartition("/")[2], []).append(path)
        if aliases:
            self._aliases[path] = tuple(aliases)
        for alias in aliases:
            self._by_alias.setdefault(fold_name(alias), []).append(path)

    def remove(self, path: str) -> None:
        folded_path = self._folded_paths.pop(path, None)
        if folded_path is None:
            return
        _discard(self._by_name, folded_path.rpartition("/")[2], path)
        for alias in self._aliases.pop(path, ()):
            _discard(self._by_alias, fold_name(alias), path)

    def with_rename(self, old: str, new: str) -> "LinkResolver":
        """A resolver as after a rename; the aliases move with the file."""
        names = LinkResolver()
        for path in self._folded_paths:
            names.add(new if path == old else path, self._aliases.get(path, ()))
        return names

    def follow(self, link: Link, source: str | None = None) -> str | None:
        """The file that a link in a note means; a link without a target means the note itself."""
        if not link.target:
            return source
        if link.kind == "markdown" and source and link.target[0] not in "./":
            relative = self._at_path(_join(source, fold_name(link.target)), link.target)
            if relative:
                return relative
        return self.resolve(link.target, source)

    def resolve(self, target: str, source: str | None = None) -> str | None:
        """The file that a name or path in a note means: by name first, by alias last."""
        folded = fold_name(target).strip()
        if folded.startswith(("/", "./", "../")):
            return self._at_path(_join("" if folded[0] == "/" else source or "", folded), target)
        found = self._by_suffix(_strip_note_ending(folded), target, source)
        if found is None and folded.endswith(NOTE_ENDINGS):
            found = self._by_suffix(folded, target, source)
        if found is None and (named := self._by_alias.get(folded)):
            found = _best(named, target, source)
        return found

    def link_keys(self, path: str) -> set[str]:
        names = (path.rpartition("/")[2], *self._aliases.get(path, ()))
        return {link_key(part) for name in names for part in (name, split_link(name)[0], _strip_ending(name))}

    def closest(self, target: str, limit: int = 3) -> list[str]:
        from difflib import get_close_matches  # only broken links need it

        key = link_key(target)
        # the names that begin like it first: comparing all names of a large vault takes long
        alike = [name for name in self._by_name if name[:1] == key[:1]] or list(self._by_name)
        names = get_close_matches(key, alike, limit, _MIN_SIMILARITY)
        return [path for name in names for path in sorted(self._by_name[name])][:limit]

    def shortest_link(self, path: str) -> str:
        """The shortest wikilink that leads to this file from every note; else its whole path."""
        name = _strip_ending(path)
        ends = {"/".join(parts[at:]) for parts in (name.split("/"), path.split("/")) for at in range(len(parts))}
        for inside in (*sorted(ends, key=lambda end: (len(end), end)), f"/{name}", f"/{path}"):
            found = find_links(f"[[{inside}]]")
            if [each.target for each in found] == [inside] and self.follow(found[0]) == path:
                return f"[[{inside}]]"
        return f"[[{path}]]"

    def _by_suffix(self, suffix: str, target: str, source: str | None) -> str | None:
        paths: Sequence[str] = self._by_name.get(suffix.rpartition("/")[2], ())
        if "/" in suffix:
            folded_paths, end = self._folded_paths, f"/{suffix}"
            paths = [path for path in paths if f"/{folded_paths[path]}".endswith(end)]
        if len(paths) < 2:
            return paths[0] if paths else None
        return _best(paths, target, source)

    def _at_path(self, folded_path: str | None, target: str) -> str | None:
        for wanted in dict.fromkeys((_strip_note_ending(folded_path), folded_path)) if folded_path else ():
            paths = self._by_name.get(wanted.rpartition("/")[2], ())
            if matching := [path for path in paths if self._folded_paths[path] == wanted]:
                return _best(matching, target, None)
        return None


def _best(paths: Sequence[str], target: str, source: str | None) -> str:
    """The best of several files with the same name: fewest folders, then nearest to the source, then by spelling."""
    here = source.split("/")[:-1] if source else []
    typed = _strip_ending(target.strip().lstrip("./"))
    depth = min(path.count("/") for path in paths)

    def rank(path: str) -> tuple[int, bool, bool, str]:
        distance = _distance(here, path.split("/")[:-1]) if source else 0
        name = _strip_ending(path)
        differs = not _compose(name).endswith(_compose(typed))
        return distance, differs, not name.endswith(typed), path

    return min((path for path in paths if path.count("/") == depth), key=rank)


def _strip_note_ending(folded: str) -> str:
    """Strips the ending of a note; a file named `.md` keeps it."""
    if folded.endswith(NOTE_ENDINGS) and not folded.endswith(("/.md", "/.markdown")):
        return folded.rpartition(".")[0] or folded
    return folded


def _strip_ending(name: str) -> str:
    return name.rpartition(".")[0] if name.lower().endswith(NOTE_ENDINGS) else name


def _compose(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _join(source: str, target: str) -> str | None:
    """A folded path relative to a note's folder; None if it is above the vault."""
    parts = fold_name(source).split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _distance(folders: Sequence[str], others: Sequence[str]) -> int:
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(folders, others, strict=False))
    return len(folders) + len(others) - 2 * len(list(shared))


def _discard(paths: dict[str, list[str]], key: str, path: str) -> None:
    paths[key].remove(path)
    if not paths[key]:
        del paths[key]
