"""Settings changed for good, in the user's file or the project's, without losing a comment."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base import toml_file
from recto.base.home_files import private_home
from recto.settings import settings
from recto.settings.project_access import PATHS, USER_FILE, ProjectAccess, project_file


class SettingChange(Struct, frozen=True):
    key: str
    value: Any
    file: Path


def set_setting(key: str, value: Any, *, home: Path, project: Path | None = None) -> SettingChange:
    """Writes a setting, checked alone and with the rest of its file: into the user's file, or the project's."""
    typed, key = settings.check(key, value, "config set"), settings.own_key(key)
    path = project_file(project) if project else home / USER_FILE
    if key in PATHS and typed and not typed.startswith("~"):
        # a typed path is meant from the current folder; a file means it from where it belongs, or from anywhere
        place = Path(typed).absolute()
        typed = os.path.relpath(place, project) if project and place.is_relative_to(project) else str(place)
    text = toml_file.with_value(_without(settings.names_of(key)[1:], path)[0], path, key.split("."), typed)
    settings.check_text(text, str(path))
    if project:
        access = ProjectAccess(home, project)
        access.accept([access.setting(key, typed, path, project)])
    with private_home(home):
        toml_file.write(path, text)
    return SettingChange(key, typed, path)


def unset_setting(key: str, *, home: Path, project: Path | None = None) -> bool:
    """Removes a setting, under whatever name, from the user's file or the project's; returns whether it was in it."""
    key = settings.own_key(key, "config unset")
    path = project_file(project) if project else home / USER_FILE
    text, was_there = _without(settings.names_of(key), path)
    if was_there:
        with private_home(home):
            toml_file.write(path, text)
    return was_there


def _without(names: Sequence[str], path: Path) -> tuple[str, bool]:
    """The text of a file without these settings, and whether one of them was in it."""
    before = text = toml_file.file_text(path)
    for name in names:
        left = toml_file.without(text, path, name.split("."))
        text = text if left is None else left
    return text, text != before
