"""Settings: every one with its help, its value, where that comes from, and a field that is checked as one types.

They are written for the user, the project, an agent or one conversation.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, RectoError
from recto.settings import settings as configuration
from recto.settings.file import set_setting, unset_setting
from recto.settings.spec import Spec
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversation, LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.templates import fill

LEVELS = {
    "user": "for you",
    "project": "for this project",
    "agent": "for an agent",
    "conversation": "for a conversation",
}
HOLDS = {
    "user": "It holds from the next start of Recto on.",
    "project": "It holds from the next start of Recto in this project on.",
    "agent": "It holds from the next message of the agent's conversations on.",
    "conversation": "It holds from the next message on.",
}


class SettingRow(Struct, frozen=True):
    spec: Spec
    value: Any
    origin: str
    told: str = ""
    """What was typed and not saved yet."""
    wrong: str = ""
    is_right: bool = False
    here: str = ""
    """What this process was started with, where that is another value."""

    @property
    def shown(self) -> str:
        return _shown(self.value)

    @property
    def group(self) -> str:
        return self.spec.key.partition(".")[0] if "." in self.spec.key else "general"


class SettingsView(FullView):
    title = "Settings"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._level, self._agent, self._conversation = "user", "default", asked.get("c", "")
        self._search, self._said = asked.get("look", ""), ""
        self._typed: dict[str, str] = {}
        self.handlers = {
            "look": self._look,
            "choose": self._choose,
            "check": self._check,
            "save": self._save,
            "unset": self._unset,
        }

    async def _look(self, deed: Deed) -> None:
        self._search, self._said = str(deed.get("value", "")), ""

    async def _choose(self, deed: Deed) -> None:
        value, what = str(deed.get("value", "")), deed.get("what")
        self._typed, self._said = {}, ""
        if what == "level" and value in LEVELS:
            self._level = value
        elif what == "agent":
            self._agent = value
        elif what == "conversation":
            self._conversation = value

    async def _check(self, deed: Deed) -> None:
        self._typed[str(deed.get("key", ""))] = str(deed.get("value", ""))

    async def _save(self, deed: Deed) -> None:
        key = str(deed.get("key", ""))
        value = str(deed.get("value", self._typed.get(key, "")))
        self._typed[key] = value
        await self._write(key, value)
        self._typed.pop(key, None)
        self._said = f"{key} is set {LEVELS[self._level]}. {HOLDS[self._level]}"

    async def _write(self, key: str, value: str) -> None:
        if self._level == "conversation":
            await self._keep(key, value)
        elif self._level == "agent":
            await asyncio.to_thread(self.desk.agents.set_value, self._agent, key, value)
        else:
            await asyncio.to_thread(set_setting, key, value, home=self.desk.home, project=self._project())

    async def _unset(self, deed: Deed) -> None:
        key = str(deed.get("key", ""))
        self._typed.pop(key, None)
        if self._level == "conversation":
            await self._keep(key, None)
        elif self._level == "agent":
            await asyncio.to_thread(self.desk.agents.unset, self._agent, key)
        else:
            await asyncio.to_thread(unset_setting, key, home=self.desk.home, project=self._project())
        self._said = f"{key} is no longer set {LEVELS[self._level]}. {HOLDS[self._level]}"

    def _project(self) -> Path | None:
        if self._level == "user":
            return None
        if self.desk.project is None:
            raise Invalid("Recto was not started in a project: there is no folder .recto above the current one")
        return self.desk.project

    async def _chosen(self) -> LiveConversation:
        found = await self.conversation(self._conversation)
        if found is None:
            raise Invalid("there is no conversation yet: the chat starts one")
        return found

    async def _keep(self, key: str, value: str | None) -> None:
        """With the conversation; open tabs follow."""
        found = await self._chosen()
        await found.talk.set_setting(key, value)
        found.refresh()

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._list = Fragment("", self.act)

    async def draw(self) -> None:
        rows = await self._rows()
        part = self._search.strip().lower()
        shown = [row for row in rows if part in row.spec.key.lower() or part in row.spec.help.lower()]
        told = {"level": self._level, "agent": self._agent, "search": self._search, "said": self._said}
        choices, agents = await self.choices(), await asyncio.to_thread(self.desk.agents.names)
        number = int(self._conversation) if self._conversation.isdecimal() else choices[0][0] if choices else None
        self._head.show(
            fill("settings", levels=LEVELS, agents=agents, choices=choices, number=number, count=len(shown), **told)
        )
        groups: dict[str, list[SettingRow]] = {}
        for row in shown:
            groups.setdefault(row.group, []).append(row)
        self._list.show(fill("settings_list", groups=groups, level=self._level))

    async def _rows(self) -> list[SettingRow]:
        """The settings that can be made at this level, as they are in force there."""
        if self._level == "agent":
            found = await asyncio.to_thread(self.desk.agents.settings, self._agent)
            return [self._row(each.spec, each.value, each.origin) for each in found]
        specs = list(configuration.specs())
        if self._level == "conversation":
            loaded = (await self._chosen()).talk.settings
            specs = [spec for spec in specs if spec.key.startswith("context.") or spec.key == "spend.conversation"]
        else:
            loaded = await asyncio.to_thread(configuration.load, self.desk.home, self.desk.project)
        rows = [self._row(spec, loaded.get(spec.key), loaded.origin(spec.key)) for spec in specs]
        return rows if self._level == "conversation" else [self._as_started(row) for row in rows]

    def _as_started(self, row: SettingRow) -> SettingRow:
        value = self.desk.settings.get(row.spec.key)
        origin = self.desk.settings.origin(row.spec.key)
        return row if value == row.value else replace(row, here=f"{_shown(value)}, from {origin}")

    def _row(self, spec: Spec, value: Any, origin: str) -> SettingRow:
        if (typed := self._typed.get(spec.key)) is None:
            return SettingRow(spec, value, origin)
        try:
            if spec.read(typed, "this") == value:
                return SettingRow(spec, value, origin)
        except RectoError as why:
            return SettingRow(spec, value, origin, typed, why.message.removeprefix("this: "))
        return SettingRow(spec, value, origin, typed, is_right=True)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
