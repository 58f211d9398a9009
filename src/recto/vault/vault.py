"""Vault: a folder of Markdown notes. Nothing outside the folder can be named, whatever the path says."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from recto.errors import Invalid, NotFound
from recto.text import clean
from recto.vault.links import Link


@dataclass(frozen=True, slots=True)
class Document:
    path: str
    """Relative to the vault, with forward slashes."""
    text: str


class Vault:
    def __init__(self, root: Path) -> None:
        if not root.exists():
            raise NotFound(f"there is no folder {root} to use as a vault", path=str(root))
        if not root.is_dir():
            raise Invalid(f"{root} is a file; a vault is a folder of notes", path=str(root))
        self.root = root.resolve()

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """Relative paths by lower-case name without `.md`: one walk serves every link."""
        names: dict[str, list[str]] = {}
        for path in self.root.rglob("*.md"):
            relative = path.relative_to(self.root)
            if any(part.startswith(".") for part in relative.parts) or not path.is_file():
                continue
            names.setdefault(path.stem.lower(), []).append(relative.as_posix())
        return names

    def resolve(self, link: Link) -> str | None:
        """The document that a link means, or None: names without case, `.md` optional, folders match by suffix."""
        wanted = PurePosixPath(link.target.lower().removesuffix(".md"))
        candidates = self._by_name.get(wanted.name, [])
        fitting = [path for path in candidates if _ends_with(path, wanted)]
        return min(fitting, key=lambda path: (path.count("/"), path), default=None)

    def read(self, path: str) -> Document:
        """A document by relative path or by note name. NotFound or Invalid when it is not inside, or not readable."""
        place = self._inside(path)
        if not os.path.isfile(place) and (found := self.resolve(Link(path, path.strip("[]")))):
            place = self._inside(found)
        try:
            text, _ = clean(place.read_bytes())
        except (FileNotFoundError, IsADirectoryError):
            raise NotFound(f"there is no document {path} in the vault", path=path) from None
        except OSError as why:
            raise Invalid(f"cannot read {path[:80]}: {why.strerror}", path=path) from why
        return Document(place.relative_to(self.root).as_posix(), text)

    def _inside(self, path: str) -> Path:
        """The real place of a relative path; symlinks, `..` and absolute paths cannot lead outside."""
        if "\0" in path:
            raise Invalid("a document's path cannot hold a NUL character", path=path)
        try:
            place = (self.root / path).resolve()
        except (OSError, RuntimeError) as why:
            raise NotFound(f"there is no document {path[:80]} in the vault", path=path) from why
        if not place.is_relative_to(self.root):
            raise Invalid(f"{path} is outside the vault", path=path)
        if any(part.startswith(".") for part in place.relative_to(self.root).parts):
            raise NotFound(f"there is no document {path} in the vault", path=path)
        return place


def _ends_with(path: str, wanted: PurePosixPath) -> bool:
    parts = PurePosixPath(path.lower().removesuffix(".md")).parts
    return parts[-len(wanted.parts) :] == wanted.parts
