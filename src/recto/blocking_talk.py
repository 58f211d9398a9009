"""Talk: one conversation for blocking code; every method calls that of AsyncTalk of the same name."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack

from recto.ask_options import AskOptions, Attachment, Reply
from recto.blocking_reader import TalkReader
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.client_turn import ExtendedPath
from recto.events import Event
from recto.own_client import PreparedRequest, PrepareOptions
from recto.settings import Settings
from recto.source_changes import ApprovalChange, IncludeChange
from recto.sources.overrides import SourceStatus
from recto.store.waiting import WaitingMessage
from recto.tasks.report import RunReport
from recto.tasks.run import TaskRun
from recto.turn.messages import Given

T = TypeVar("T")


class Talk(TalkReader):
    """One conversation, from one client's place in it. It is stored with its first message."""

    @property
    def settings(self) -> Settings:
        return self._talk.settings

    @property
    def chosen_settings(self) -> dict[str, Any]:
        return self._talk.chosen_settings

    def open_document(self, path: str | None) -> str | None:
        return self._loop.run(self._talk.open_document(path))

    def wake(self) -> None:
        self._loop.run(self._talk.wake())

    def watch_vault(self) -> None:
        self._loop.run(self._talk.watch_vault())

    def use(self, model: str) -> None:
        self._loop.run(self._talk.use(model))

    def use_strategy(self, name: str | None) -> None:
        self._loop.run(self._talk.use_strategy(name))

    def set_setting(self, key: str, value: Any) -> Any:
        return self._loop.run(self._talk.set_setting(key, value))

    def remember_in_project(self, text: str) -> Path:
        return self._loop.run(self._talk.remember_in_project(text))

    def add_source(self, named: str) -> SourceStatus:
        return self._loop.run(self._talk.add_source(named))

    def add_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        return self._loop.run(self._talk.add_sources(names))

    def remove_source(self, named: str) -> SourceStatus:
        return self._loop.run(self._talk.remove_source(named))

    def remove_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        return self._loop.run(self._talk.remove_sources(names))

    def set_include(self, named: str, mode: str) -> IncludeChange:
        return self._loop.run(self._talk.set_include(named, mode))

    def allow(self, tool: str) -> None:
        self._loop.run(self._talk.allow(tool))

    def ask_again(self, tool: str) -> ApprovalChange:
        return self._loop.run(self._talk.ask_again(tool))

    def extend(self, messages: Sequence[Any]) -> ExtendedPath:
        return self._loop.run(self._talk.extend(messages))

    def prepare(self, given: Given | None = None, **options: Unpack[PrepareOptions]) -> PreparedRequest:
        return self._loop.run(self._talk.prepare(given, **options))

    def record(self, prepared: PreparedRequest, reply: Any) -> Reply:
        return self._loop.run(self._talk.record(prepared, reply))

    def stream(self, given: Given = (), *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._loop.stream(self._talk.stream(given, can_ask=can_ask, **options))

    def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.ask(given, **options))

    def stream_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        can_ask: bool = True,
        **options: Unpack[AskOptions],
    ) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the run, which can go on later."""
        events = self._talk.stream_goal(goal, max_steps=max_steps, max_cost=max_cost, can_ask=can_ask, **options)
        return self._loop.stream(events)

    def run_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        **options: Unpack[AskOptions],
    ) -> RunReport:
        return self._loop.run(self._talk.run_goal(goal, max_steps=max_steps, max_cost=max_cost, **options))

    def last_run(self) -> TaskRun | None:
        return self._loop.run(self._talk.last_run())

    def stop_goal(self) -> bool:
        return self._loop.run(self._talk.stop_goal())

    def queue(self, given: Given, *, attachments: Sequence[Attachment] = ()) -> WaitingMessage:
        return self._loop.run(self._talk.queue(given, attachments=attachments))

    def waiting(self) -> list[WaitingMessage]:
        return self._loop.run(self._talk.waiting())

    def take_back(self, id: str | None = None) -> WaitingMessage:
        return self._loop.run(self._talk.take_back(id))

    def undo(self) -> Message:
        return self._loop.run(self._talk.undo())

    def fork(self, message: str) -> Message:
        return self._loop.run(self._talk.fork(message))

    def switch(self, message: str) -> str:
        return self._loop.run(self._talk.switch(message))

    def set_priority(self, message: str, priority: int) -> Message:
        return self._loop.run(self._talk.set_priority(message, priority))

    def stream_compaction(self, keep: str = "") -> Generator[Event]:
        return self._loop.stream(self._talk.stream_compaction(keep))

    def compact(self, keep: str = "") -> Compaction:
        return self._loop.run(self._talk.compact(keep))

    def clear(self) -> Compaction:
        return self._loop.run(self._talk.clear())

    def uncompact(self) -> Compaction:
        return self._loop.run(self._talk.uncompact())

    def edit_summary(self, text: str) -> Compaction:
        return self._loop.run(self._talk.edit_summary(text))

    def pin(self, message: str) -> Compaction:
        return self._loop.run(self._talk.pin(message))

    def unpin(self, message: str) -> Compaction:
        return self._loop.run(self._talk.unpin(message))

    def stream_edit(
        self, message: str, text: str, *, can_ask: bool = True, **options: Unpack[AskOptions]
    ) -> Generator[Event]:
        return self._loop.stream(self._talk.stream_edit(message, text, can_ask=can_ask, **options))

    def edit(self, message: str, text: str, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.edit(message, text, **options))

    def stream_regenerate(self, *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        return self._loop.stream(self._talk.stream_regenerate(can_ask=can_ask, **options))

    def regenerate(self, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.regenerate(**options))
