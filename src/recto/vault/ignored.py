"""Ignored: what `.gitignore` files say of a vault's files, the innermost first. Knows patterns, not notes.

A walk comes from above and never enters what is left out, so each pattern is asked about a path itself, not about the
folders it lies in. Checked against git.
"""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = ".gitignore"
_MOST_READ = 64_000
_TOKEN = re.compile(
    r"(?P<above>\A\*\*/)|(?P<between>/\*\*/(?:\*\*/)*)|(?P<below>/\*\*\Z)|(?P<stars>\*+)|(?P<any>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Pattern:
    text: str
    """As a regular expression."""
    leaves_out: bool
    """Else it takes back in."""
    is_of_folders: bool
    is_of_names: bool
    """About a name wherever it stands; else about a path from the file's folder on."""
    expression: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Rules:
    """One file's patterns, the last one first, as the last one decides."""

    start: int
    patterns: tuple[_Pattern, ...]
    some_name: re.Pattern[str]
    some_path: re.Pattern[str]
    """Whatever any of the patterns is about: one look for the many files that none is about."""

    def say(self, path: str, is_folder: bool) -> bool | None:
        seen, name = path[self.start :], path.rpartition("/")[2]
        if not self.some_name.fullmatch(name) and not self.some_path.fullmatch(seen):
            return None
        for pattern in self.patterns:
            if (
                pattern.expression.fullmatch(name if pattern.is_of_names else seen)
                and is_folder >= pattern.is_of_folders
            ):
                return pattern.leaves_out
        return None


@dataclass(frozen=True, slots=True)
class Ignored:
    rules: tuple[_Rules, ...] = ()

    def within(self, folder: Path, prefix: str) -> "Ignored":
        """What counts below a folder that has a `.gitignore` of its own; one that cannot be read says nothing."""
        patterns = tuple(pattern for line in reversed(_lines(folder / NAME)) if (pattern := _understood(line)))
        if not patterns:
            return self
        names, paths = _any(patterns, is_of_names=True), _any(patterns, is_of_names=False)
        return Ignored((_Rules(len(prefix), patterns, names, paths), *self.rules))

    def leaves_out(self, path: str, is_folder: bool) -> bool:
        """Whether git would leave it out, its folders not being left out: the innermost file that has a say decides."""
        for rules in self.rules:
            said = rules.say(path, is_folder)
            if said is not None:
                return said
        return False


def is_ignored(root: Path, path: str) -> bool:
    """Whether one file is left out, as a walk to it would find."""
    ignored, start, prefix = Ignored(), os.path.join(root, ""), ""
    for part in path.split("/"):
        # most folders have no such file, and that is told without a Path
        if os.path.isfile(f"{start}{prefix}{NAME}"):
            ignored = ignored.within(root / prefix, prefix)
        if ignored.leaves_out(prefix + part, is_folder=len(prefix) + len(part) < len(path)):
            return True
        prefix += part + "/"
    return False


def _lines(place: Path) -> Sequence[str]:
    try:
        if not place.is_file():
            return []
        with place.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    except OSError:
        return []


def _any(patterns: Iterable[_Pattern], is_of_names: bool) -> re.Pattern[str]:
    texts = [pattern.text for pattern in patterns if pattern.is_of_names == is_of_names]
    return re.compile("|".join(f"(?:{text})" for text in texts) or "(?!)", re.DOTALL)


def _understood(line: str) -> _Pattern | None:
    """None for what says nothing: a comment, and what git cannot read either."""
    line = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    takes_back = line.startswith("!")
    bare = line[takes_back:].removesuffix("/")
    if not bare or line.startswith("#") or bare.endswith("\\") or "[[:" in bare:
        return None
    is_of_names = "/" not in bare
    text = "".join(_translated(token) for token in _TOKEN.finditer(bare.removeprefix("/")))
    with suppress(re.error):
        expression = re.compile(text, re.DOTALL)
        return _Pattern(text, not takes_back, line.endswith("/"), is_of_names, expression)
    return None


def _translated(token: re.Match[str]) -> str:
    kind = token.lastgroup or ""
    if kind == "set":
        return f"(?!/)[{'^' if token['not'] else ''}{_escaped(token['set'])}]"
    fixed = {"above": "(?:.+/)?", "between": "/(?:.+/)?", "below": "/.+", "stars": "[^/]*", "any": "[^/]"}
    return fixed.get(kind) or re.escape(token[kind])


def _escaped(inside: str) -> str:
    """A set's content: git's escapes are those of expressions; brackets and what sets may do one day are not."""
    return re.sub(r"\\?([\[\]&~|^])", r"\\\1", inside)
