"""The settings page: each setting with its help, value, origin, and a field that is checked during typing.

Settings are written for the user or for one conversation.
"""

import asyncio
import json
from typing import Any, ClassVar

from msgspec import Struct

from recto.errors import RectoError
from recto.settings import settings as configuration
from recto.settings.settings import set_setting, unset_setting
from recto.settings.spec import Spec
from recto.web.page import FullView

LEVELS = {
    "user": ("for you", "the next start of Recto"),
    "conversation": ("for a conversation", "the next message"),
}
"""The words for each level, and when a change applies."""


class SettingRow(Struct):
    spec: Spec
    value: Any
    origin: str
    typed: str = ""
    """Unsaved input."""
    wrong: str = ""
    is_right: bool = False

    @property
    def shown(self) -> str:
        return _shown(self.value)


class SettingsView(FullView):
    address = "/settings"
    template = "settings"
    fields: ClassVar = {"level": "user", "conversation": "", "search": ""}

    def build(self) -> None:
        self._typed: dict[str, str] = {}
        super().build()

    async def do_choose(self, name: str, value: str) -> None:
        if name != "search":
            self._typed = {}
        if name != "level" or value in LEVELS:
            await super().do_choose(name, value)

    async def do_check(self, key: str, value: str) -> None:
        self._typed[key] = value

    async def do_save(self, key: str, value: str) -> None:
        self._typed[key] = value
        await self._write(key, value)
        self._say(f"{key} is set")

    async def do_unset(self, key: str) -> None:
        await self._write(key, None)
        self._say(f"{key} is no longer set")

    def _say(self, done: str) -> None:
        what, since = LEVELS[self.form["level"]]
        self.said = f"{done} {what}. It applies from {since}."

    async def _write(self, key: str, value: str | None) -> None:
        """Set a value at the chosen level; None removes it."""
        if self.form["level"] == "conversation":
            found = await self.chosen()
            await found.talk.set_setting(key, value)
            found.refresh()  # open tabs follow
        elif value is None:
            await asyncio.to_thread(unset_setting, key, home=self.desk.home)
        else:
            await asyncio.to_thread(set_setting, key, value, home=self.desk.home)
        self._typed.pop(key, None)

    async def values(self) -> dict[str, Any]:
        part = self.form["search"].strip().lower()
        rows = [row for row in await self._rows() if part in row.spec.key.lower() or part in row.spec.help.lower()]
        groups: dict[str, list[SettingRow]] = {}
        for row in rows:
            group, dot, _ = row.spec.key.partition(".")
            groups.setdefault(group if dot else "general", []).append(row)
        levels = [(level, words) for level, (words, _) in LEVELS.items()]
        return {"levels": levels, "choices": await self.choices(), "groups": groups, "count": len(rows)}

    async def _rows(self) -> list[SettingRow]:
        """The settings of this level, with the values in force there."""
        specs = list(configuration.specs())
        if self.form["level"] == "conversation":
            loaded = (await self.chosen()).talk.settings
            specs = [spec for spec in specs if spec.key.startswith("context.") or spec.key == "spend.conversation"]
            return [self._row(spec, loaded.get(spec.key), loaded.origin(spec.key)) for spec in specs]
        loaded = await asyncio.to_thread(configuration.load, self.desk.home, self.desk.project)
        return [self._row(spec, loaded.get(spec.key), loaded.origin(spec.key)) for spec in specs]

    def _row(self, spec: Spec, value: Any, origin: str) -> SettingRow:
        row = SettingRow(spec, value, origin)
        if (typed := self._typed.get(spec.key)) is None:
            return row
        try:
            row.is_right = spec.read(typed, "this") != value
        except RectoError as why:
            row.wrong = why.message.removeprefix("this: ")
        row.typed = typed if row.is_right or row.wrong else ""
        return row


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
