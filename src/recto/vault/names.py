"""Names: which file a link means, by Obsidian's rules. Knows paths and aliases, reads no file.

Case and the way accents are written do not matter, `.md` may be left out, folders match from the right. Of several:
the fewest folders, then the nearest to the linking note, then the very spelling, then the alphabet. Aliases come last.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recto.vault.likeness import Likeness
from recto.vault.links import Link, split

NOTE_ENDINGS = (".md", ".markdown")
_PARTING, _SIGN = re.compile(r"\\?[#^|]"), re.compile(r"[#^|]")
# A name is never longer than the disk allows; so many signs in it are tried as a part of it.
_LONGEST_NAME, _MOST_SIGNS = 1024, 16
_MOST_REMEMBERED = 50_000


def fold(text: str) -> str:
    """The same for all spellings that count as one."""
    if text.isascii():
        return text.lower()
    return _composed(_composed(text).lower())


def link_key(target: str) -> str:
    """What a link is filed under: the name it ends in. Two links to one note may differ in it, by aliases."""
    return _bare(fold(target).rstrip("/").rpartition("/")[2])


class Names:
    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._places: dict[str, str] = {}
        """Each path, folded and without `.md`."""
        self._by_name: dict[str, list[str]] = {}
        self._by_alias: dict[str, list[str]] = {}
        self._aliases: dict[str, tuple[str, ...]] = {}
        self._parting: set[str] = set()
        """Files whose names hold what else parts a link."""
        self._remembered: dict[tuple[str, str | None], str] = {}
        self._likeness: Likeness | None = None
        for path in paths:
            self.add(path)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __len__(self) -> int:
        return len(self._places)

    def add(self, path: str, aliases: Sequence[str] = ()) -> None:
        """A file, or a file's new aliases."""
        if path in self._places:
            self.remove(path)
        place = self._places[path] = _bare(fold(path))
        self._by_name.setdefault(place.rpartition("/")[2], []).append(path)
        if aliases:
            self._aliases[path] = tuple(aliases)
        for alias in aliases:
            self._by_alias.setdefault(fold(alias), []).append(path)
        if _SIGN.search(path) or any(_SIGN.search(alias) for alias in aliases):
            self._parting.add(path)
        self._forget()

    def remove(self, path: str) -> None:
        place = self._places.pop(path, None)
        if place is None:
            return
        _take(self._by_name, place.rpartition("/")[2], path)
        for alias in self._aliases.pop(path, ()):
            _take(self._by_alias, fold(alias), path)
        self._parting.discard(path)
        self._forget()

    def renamed(self, old: str, new: str) -> "Names":
        """What names mean after a file has another path; its aliases go along."""
        names = Names()
        for path in self._places:
            names.add(new if path == old else path, self._aliases.get(path, ()))
        return names

    def follow(self, link: Link, source: str | None = None) -> str | None:
        """The file that a link in a note means; a link without a target means the note itself."""
        if self._parting:
            link = self.settle(link, source)
        if not link.target:
            return source
        if link.kind == "markdown" and source and link.target[0] not in "./":
            beside = self._at(_joined(source, fold(link.target)), link.target)
            if beside:
                return beside
        return self.resolve(link.target, source)

    def settle(self, link: Link, source: str | None = None) -> Link:
        """The link with the longest name that exists as its target: `[[C# notes]]` may be about `C# notes.md`."""
        if link.kind == "markdown" or not self._parting:
            return link
        inside = link.inside[:_LONGEST_NAME]
        signs = [found.start() for found in _PARTING.finditer(inside)][:_MOST_SIGNS]
        for end in (len(inside), *reversed(signs[1:])) if signs else ():
            name = inside[:end].replace("\\|", "|").strip()
            if name and self.resolve(name, source):
                _, heading, block, caption = split(link.inside[end:])
                return replace(link, target=name, heading=heading, block=block, caption=caption)
        return link

    def resolve(self, target: str, source: str | None = None) -> str | None:
        """The file that a name or a path means to a note, by its name first, by an alias last."""
        folded = target.lower() if target.isascii() else fold(target)
        paths = self._by_name.get(folded)
        if paths and len(paths) == 1 and not folded.endswith(NOTE_ENDINGS):
            return paths[0]
        return self._resolved(target, folded.strip(), source)

    def keys(self, path: str) -> set[str]:
        """What links that mean this file can be filed under."""
        names = (path.rpartition("/")[2], *self._aliases.get(path, ()))
        return {link_key(part) for name in names for part in (name, split(name)[0], _unended(name))}

    def closest(self, target: str, most: int = 3) -> list[str]:
        """Files whose names look like this one, the most alike first."""
        if self._likeness is None:
            self._likeness = Likeness(self._by_name)
        names = self._likeness.closest(link_key(target))
        return [path for name in names for path in sorted(self._by_name[name])][:most]

    def _forget(self) -> None:
        self._remembered.clear()
        self._likeness = None

    def _resolved(self, target: str, folded: str, source: str | None) -> str | None:
        if folded.startswith(("/", "./", "../")):
            root = "" if folded[0] == "/" else source or ""
            return self._at(_joined(root, folded), target)
        found = self._ending_in(_bare(folded), target, source)
        if found is None and folded.endswith(NOTE_ENDINGS):
            found = self._ending_in(folded, target, source)
        if found is None and (named := self._by_alias.get(folded)):
            found = _best(named, target, source)
        return found

    def _ending_in(self, wanted: str, target: str, source: str | None) -> str | None:
        paths: Sequence[str] = self._by_name.get(wanted.rpartition("/")[2], ())
        if "/" in wanted:
            places, end = self._places, f"/{wanted}"
            paths = [path for path in paths if f"/{places[path]}".endswith(end)]
        if len(paths) < 2:
            return paths[0] if paths else None
        key = (target, source.rpartition("/")[0] if source else None)
        if key not in self._remembered:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = _best(paths, target, source)
        return self._remembered[key]

    def _at(self, place: str | None, target: str) -> str | None:
        """The file at exactly this folded place."""
        for wanted in dict.fromkeys((_bare(place), place)) if place else ():
            paths = self._by_name.get(wanted.rpartition("/")[2], ())
            if fitting := [path for path in paths if self._places[path] == wanted]:
                return _best(fitting, target, None)
        return None


def _best(paths: Sequence[str], target: str, source: str | None) -> str:
    """Of files that all bear the name."""
    here = source.split("/")[:-1] if source else []
    spelled = _unended(target.strip().lstrip("./"))
    least = min(path.count("/") for path in paths)

    def rank(path: str) -> tuple[int, bool, bool, str]:
        apart = _apart(here, path.split("/")[:-1]) if source else 0
        name = _unended(path)
        is_other = not _composed(name).endswith(_composed(spelled))
        return apart, is_other, not name.endswith(spelled), path

    return min((path for path in paths if path.count("/") == least), key=rank)


def _bare(folded: str) -> str:
    """Without the ending of a note; a file that is called `.md` keeps it."""
    if folded.endswith(NOTE_ENDINGS) and not folded.endswith(("/.md", "/.markdown")):
        return folded.rpartition(".")[0] or folded
    return folded


def _unended(name: str) -> str:
    return name.rpartition(".")[0] if name.lower().endswith(NOTE_ENDINGS) else name


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _joined(source: str, target: str) -> str | None:
    """A folded place as seen from a note's folder; None when it lies above the vault."""
    parts = fold(source).split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _apart(here: Sequence[str], there: Sequence[str]) -> int:
    shared = 0
    for one, other in zip(here, there, strict=False):
        if one != other:
            break
        shared += 1
    return len(here) + len(there) - 2 * shared


def _take(paths: dict[str, list[str]], key: str, path: str) -> None:
    paths[key].remove(path)
    if not paths[key]:
        del paths[key]
