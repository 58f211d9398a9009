"""GitIgnore: the files that a vault's `.gitignore` files exclude, innermost first. Tested against git.

A walk starts at the top and never enters an excluded folder, so patterns match the path itself, not its parents. Our
own code, because the library for these patterns, pathspec, differs from git in places.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

NAME = ".gitignore"
_MAX_BYTES = 64_000
_TOKEN = re.compile(
    r"(?P<above>\A\*\*/)|(?P<between>/\*\*/(?:\*\*/)*)|(?P<below>/\*\*\Z)|(?P<stars>\*+)|(?P<any>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?[^\]]{0,255}+)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


class _Pattern(Struct, frozen=True):
    start: int
    """The length of the path of its file's folder."""
    regex: re.Pattern[str]
    ignores: bool
    """False for a pattern that begins with `!`."""
    folders_only: bool
    matches_name: bool
    """Matches a name in any folder; otherwise a path relative to the file's folder."""


class GitIgnore(Struct, frozen=True):
    rules: tuple[_Pattern, ...] = ()
    """In reverse order, since the last match decides."""

    def within(self, folder: Path, prefix: str) -> "GitIgnore":
        """The rules below a folder with its own `.gitignore`; an unreadable one has no effect."""
        parsed = (_parse_pattern(line, len(prefix)) for line in reversed(_lines(folder / NAME)))
        return GitIgnore((*filter(None, parsed), *self.rules))

    def ignores(self, path: str, is_folder: bool) -> bool:
        """True if git ignores a path whose parent folders are not ignored."""
        name = path.rpartition("/")[2]
        for each in self.rules:
            is_candidate = is_folder >= each.folders_only
            if is_candidate and each.regex.fullmatch(name if each.matches_name else path[each.start :]):
                return each.ignores
        return False


def is_ignored(root: Path, path: str) -> bool:
    """True if one file is ignored, as in a walk to it."""
    rules, start, prefix = GitIgnore(), os.path.join(root, ""), ""
    for part in path.split("/"):
        # most folders have no such file, and this check needs no Path
        if os.path.isfile(f"{start}{prefix}{NAME}"):
            rules = rules.within(root / prefix, prefix)
        if rules.ignores(prefix + part, is_folder=len(prefix) + len(part) < len(path)):
            return True
        prefix += part + "/"
    return False


def _lines(location: Path) -> Sequence[str]:
    try:
        if not location.is_file():
            return []
        with location.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    except OSError:
        return []


def _parse_pattern(line: str, start: int = 0) -> _Pattern | None:
    """None for comments, empty lines, and what git cannot read either."""
    line = re.sub(r"(?<![\\ ]) ++$|(?<=\\ ) ++$", "", line.removesuffix("\r"))
    is_negated = line.startswith("!")
    bare = line[is_negated:].removesuffix("/")
    if not bare or line.startswith("#") or bare.endswith("\\") or "[[:" in bare:
        return None
    text = _regex_text(list(_TOKEN.finditer(bare.removeprefix("/"))))
    with suppress(re.error):
        regex = re.compile(text, re.DOTALL)
        return _Pattern(start, regex, not is_negated, line.endswith("/"), "/" not in bare)
    return None


_ANY_FOLDERS = {"above": "", "between": "/"}


def _regex_text(tokens: Sequence[re.Match[str]]) -> str:
    """A pattern as a regular expression. The text after a wildcard matches at its first occurrence, without
    backtracking, except for the last one, which must reach the end: so `*a*a*a*a*b` is fast too."""
    folders = [at for at, token in enumerate(tokens) if token.lastgroup in _ANY_FOLDERS]
    starts = [0, *(at + 1 for at in folders)]
    parts = [_part_text(tokens[start:end]) for start, end in zip(starts, [*folders, len(tokens)], strict=True)]
    text = parts[0]
    for number, (at, part) in enumerate(zip(folders, parts[1:], strict=True), 1):
        is_last = number == len(folders)
        text += _ANY_FOLDERS[str(tokens[at].lastgroup)]
        text += f"(?:.+/)?{part}" if is_last else f"(?>(?:.+?/)??{part}(?=/))"
    return text


def _part_text(tokens: Sequence[re.Match[str]]) -> str:
    parts = [""]
    for token in tokens:
        if token.lastgroup == "stars":
            parts.append("")
        else:
            parts[-1] += _translate(token)
    first, *middle = parts
    last = f"[^/]*{middle.pop()}" if middle else ""
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + last


def _translate(token: re.Match[str]) -> str:
    kind = token.lastgroup or ""
    if kind == "set":
        return f"(?!/)[{'^' if token['not'] else ''}{_escape_set(token['set'])}]"
    return {"below": "/.+", "any": "[^/]"}.get(kind) or re.escape(token[kind])


def _escape_set(inside: str) -> str:
    """Git's escapes in a set are those of regular expressions, except for brackets and set operators."""
    return re.sub(r"\\?([\[\]&~|^])", r"\\\1", inside)
