"""File list: paths on one line, by their folders where room is scarce: `src/{a.py,b.py}, setup.py (+12 more)`."""

import re
from collections.abc import Iterable, Sequence

from recto.summary.truncation import CountTokens, largest_fitting

COMMA = ", "
_GROUP = re.compile(r"([^{}]*[/\\])\{([^{}]+)\}")
_SEPARATOR = re.compile(r"[/\\]")
_MORE = re.compile(r" \(\+\d+ more\)$")
_FOLDER = re.compile(r"(.*[/\\])?([^/\\]*)", re.DOTALL)


def list_files(files: Sequence[str], limit: int, count: CountTokens, label: str, *, is_brief: bool = False) -> str:
    """One line after its label, oldest first: whole paths, or shared folders, or of those the newest; empty if none
    fits."""
    whole = label + COMMA.join(files)
    if not files or (not is_brief and count(whole) <= limit):
        return whole if files else ""

    def newest(number: int) -> str:
        more = f" (+{len(files) - number} more)" if number < len(files) else ""
        return f"{label}{COMMA.join(_by_folder(files[len(files) - number :]))}{more}"

    number = largest_fitting(lambda number: count(newest(number)) <= limit, len(files), len(files))
    return newest(number) if number else ""


def parse_files(text: str) -> tuple[str, ...]:
    files: list[str] = []
    for part in _MORE.sub("", text).split(COMMA):
        group = _GROUP.fullmatch(part)
        files += [group[1] + name for name in group[2].split(",")] if group else [part]
    return tuple(path for path in files if path)


def with_files(known: tuple[str, ...], more: Iterable[str], most: int) -> tuple[str, ...]:
    """The newest last, each once: a path and the same path from the root are one file."""
    files = dict.fromkeys(known)
    for path in more:
        path = " ".join(path.removeprefix("./").replace(COMMA, ",").split())
        if not path:
            continue
        same = [other for other in files if is_same_file(path, other)]
        for other in same:
            del files[other]
        files[max((path, *same), key=len)] = None
    return tuple(files)[-most:]


def is_same_file(path: str, other: str) -> bool:
    if path == other:
        return True
    longer, shorter = (path, other) if len(path) > len(other) else (other, path)
    return longer.endswith(shorter) and longer[-len(shorter) - 1] in "/\\"


def _by_folder(files: Sequence[str]) -> list[str]:
    """Folders in the order of their first file; names that braces would spoil stay alone."""
    folders: dict[str, list[str]] = {}
    roots = {found[1] for path in files if (found := _FOLDER.fullmatch(path)) and found[1]}
    for path in files:
        parts = _FOLDER.fullmatch(path)
        assert parts is not None
        if not parts[1] or any(mark in path for mark in "{},"):
            folders[path] = [""]
            continue
        # the same folder from the root; a single name may be that of several folders
        is_named = len(_SEPARATOR.findall(parts[1])) > 1
        folder = max((root for root in roots if is_named and is_same_file(parts[1], root)), key=len, default=parts[1])
        folders.setdefault(folder, []).append(parts[2])
    return [
        f"{folder}{{{','.join(names)}}}" if len(names) > 1 else folder + names[0] for folder, names in folders.items()
    ]
