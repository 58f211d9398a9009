"""Permissions of servers: which servers of a project may start (Trust), and which tool definitions run without asking
(AllowedTools), in files of the home.

A setting or an option allows a tool by its name; AllowedTools pins the name to a definition. The first time an allowed
tool is offered, its definition is accepted. From then on only accepted definitions run without asking:

    settings allow `files`            read_file and write_file are accepted as the server describes them now
    write_file gets another schema    it is not accepted: the user is asked, and sees what changed
    the server gains delete_file      it was not there when the server was allowed: the user is asked

There is a file for each server. It also keeps the definitions themselves, to show what changed.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.home_files import ALLOWED_FOLDER, SERVERS, TrustFile, locked_file, make_private_folder, write_json
from recto.errors import RectoError
from recto.sources.server_config import ServerConfig
from recto.sources.tool_definition import ServerIdentity, ToolChange, ToolDefinition
from recto.sources.tools import RemoteTool

FORMAT = 1
MOST_ACCEPTED = 8
"""Most accepted definitions kept per tool: another project or release may return."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")

Consent = Literal["", "tool", "server"]


def file_stem(server: str) -> str:
    """The server's name as part of a file name."""
    return _UNSAFE.sub("_", server)


class Trust:
    def __init__(self, home: Path) -> None:
        self._file = TrustFile(home, SERVERS)

    def is_trusted(self, config: ServerConfig, project: Path | None) -> bool:
        return config.is_yours or self._file.is_trusted(config.name, config.sha256, project)

    def trust(self, config: ServerConfig, project: Path | None) -> None:
        self._file.trust({config.name: config.sha256}, project)

    def distrust(self, name: str, project: Path | None) -> None:
        """Revoke the trust, if any."""
        self._file.distrust([name], project)


class _Accepted(Struct, frozen=True):
    format: int = FORMAT
    is_whole: bool = False
    """True if all its tools at some time were accepted together; later ones are not."""
    tools: Mapping[str, tuple[ToolDefinition, ...]] = field(default_factory=dict)
    """Definitions by tool name, oldest first."""

    def change(self, definition: ToolDefinition) -> ToolChange | None:
        known = self.tools.get(definition.name, ())
        if definition.sha256 in {each.sha256 for each in known}:
            return None
        return ToolChange(known[-1] if known else None, definition, is_new=not known)

    def accept(self, definitions: Iterable[ToolDefinition]) -> "_Accepted":
        tools = dict(self.tools)
        for each in definitions:
            others = [known for known in tools.get(each.name, ()) if known.sha256 != each.sha256]
            tools[each.name] = (*others, each)[-MOST_ACCEPTED:]
        return replace(self, tools=tools)

    def unpinned(self, remotes: Sequence[RemoteTool], allowed: Collection[str]) -> list[ToolDefinition]:
        """New tools that are allowed by name, or with all tools of a new server."""
        return [
            each.definition
            for each in remotes
            if each.tool.id.name not in self.tools and (not self.is_whole or consent(each, allowed) == "tool")
        ]


def consent(remote: RemoteTool, allowed: Collection[str]) -> Consent:
    """The name by which settings or options (`allowed`: `server` or `server/tool`) let it run without asking."""
    server = remote.tool.server
    if (remote.approval == "allow" and remote.is_named) or f"{server}/{remote.tool.id.name}" in allowed:
        return "tool"
    return "server" if remote.approval == "allow" or server in allowed else ""


class AllowedTools:
    def __init__(self, home: Path) -> None:
        self._folder = home / ALLOWED_FOLDER

    def pin(self, offered: Sequence[RemoteTool], allowed: Collection[str]) -> list[str]:
        """Accept allowed tools at their first offer. Returns notes about changed ones."""
        notes = []
        for remotes in _by_server(each for each in offered if consent(each, allowed)):
            server, path = remotes[0].tool.server, self._path(remotes[0].definition)
            try:
                if _read(path).unpinned(remotes, allowed):
                    with self._changing(path) as known:  # another process may have been faster
                        is_whole = known.is_whole or any(consent(each, allowed) == "server" for each in remotes)
                        if fresh := known.unpinned(remotes, allowed):
                            _write(path, replace(known.accept(fresh), is_whole=is_whole))
                changes = list(self._changes(remotes))
            except (OSError, msgspec.DecodeError) as why:
                notes.append(f"the tools of {server} ask before they run: {_problem(path, why)}")
                continue
            if changes:
                more = f", and {len(changes) - 1} more of its tools" if len(changes) > 1 else ""
                shows = f"`recto sources trust {changes[0].after.server}` shows and accepts the change"
                notes.append(f"{changes[0].text}{more}: it asks before it runs; {shows}")
        return notes

    def change(self, definition: ToolDefinition) -> ToolChange | None:
        """The difference of a tool from what was accepted, or None."""
        try:
            return _read(self._path(definition)).change(definition)
        except (OSError, msgspec.DecodeError):
            return ToolChange(None, definition)

    def has(self, server: str, reached: ServerIdentity) -> bool:
        """True if any tool of a server was ever accepted."""
        return self._path(ToolDefinition(server, "", reached=reached)).exists()

    def changes(self, offered: Sequence[RemoteTool]) -> tuple[ToolChange, ...]:
        """The changes of accepted tools, and new tools of a server that was accepted as a whole."""
        try:
            return tuple(change for remotes in _by_server(offered) for change in self._changes(remotes))
        except (OSError, msgspec.DecodeError):
            return tuple(ToolChange(None, each.definition) for each in offered)

    def known(self, definition: ToolDefinition, sha256: str) -> ToolDefinition | None:
        try:
            known = _read(self._path(definition)).tools.get(definition.name, ())
        except (OSError, msgspec.DecodeError):
            return None
        return next((each for each in known if each.sha256 == sha256), None)

    def accept(self, definitions: Iterable[ToolDefinition]) -> None:
        for each in definitions:
            path = self._path(each)
            try:
                with self._changing(path) as known:
                    _write(path, known.accept([each]))
            except (OSError, msgspec.DecodeError) as why:
                raise RectoError(f"{each.id} is not accepted: {_problem(path, why)}", path=str(path)) from why

    def _changes(self, remotes: Sequence[RemoteTool]) -> Iterator[ToolChange]:
        known = _read(self._path(remotes[0].definition))
        for each in remotes:
            change = known.change(each.definition)
            if change and (known.is_whole or not change.is_new):
                yield change

    @contextmanager
    def _changing(self, path: Path) -> Iterator[_Accepted]:
        make_private_folder(self._folder)
        with locked_file(path.with_suffix(".lock")):
            yield _read(path)

    def _path(self, definition: ToolDefinition) -> Path:
        digest = hashlib.sha256(f"{definition.reached.place}\n{definition.server}".encode()).hexdigest()[:16]
        return self._folder / f"{file_stem(definition.server)}-{digest}.json"


def _by_server(remotes: Iterable[RemoteTool]) -> Iterator[list[RemoteTool]]:
    return (list(group) for _, group in groupby(remotes, lambda each: (each.tool.server, each.reached)))


def _problem(path: Path, why: OSError | msgspec.DecodeError) -> str:
    if isinstance(why, OSError):
        return f"cannot use {path}: {why.strerror or why}"
    return f"{path} is damaged; delete it to accept the tools as they are now"


def _read(path: Path) -> _Accepted:
    """Read the file, if it exists. Raises OSError or DecodeError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return _Accepted()
    found = msgspec.json.decode(data, type=_Accepted)
    if found.format != FORMAT:
        raise msgspec.DecodeError(f"its format is {found.format}")
    return found


def _write(path: Path, accepted: _Accepted) -> None:
    write_json(path, msgspec.to_builtins(accepted))
