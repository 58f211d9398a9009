"""Recto is the page the model reads; verso is everything kept behind it.

`open()` and `open_async()` give a desk; docs/python.md shows what a desk and its talks can do.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recto.api.ask_options import Reply
    from recto.api.blocking import Desk, Talk
    from recto.api.blocking import open_desk as open
    from recto.api.client_turn import ExtendedPath, PreparedRequest
    from recto.api.desk import AsyncDesk, open_async
    from recto.api.fitting import FittedMessages, fit
    from recto.api.talk import AsyncTalk
    from recto.chat.blocks import Compaction, File, Image, Quote, Text, ToolCall, ToolResult
    from recto.chat.message import Message, Usage
    from recto.errors import (
        Altered,
        BrokenPlugin,
        Busy,
        DoesNotFit,
        Invalid,
        MessagesLost,
        NoKey,
        NotFound,
        NoVectors,
        Overflow,
        ProviderError,
        RateLimited,
        RectoError,
        Refused,
        SpendLimit,
        StoreError,
        TooNew,
        Unreachable,
    )
    from recto.events import (
        Appended,
        ApprovalAsked,
        Branched,
        CompactionProposed,
        ContextCompacted,
        ContextUsage,
        Event,
        FactLearned,
        FactProposed,
        NotesQuoted,
        Noticed,
        PlanChanged,
        Referenced,
        Replied,
        Retrying,
        RunEnded,
        Sent,
        SummaryProgress,
        SummaryRequested,
        TextDelta,
        ThinkingDelta,
        ToolCallsPending,
        ToolFinished,
        ToolStarted,
        Working,
    )
    from recto.sources.source import Tool
    from recto.tasks.plan import TaskPlan
    from recto.tasks.run import RunReport, TaskRun
    from recto.transfer.report import ImportReport
    from recto.window.request import NamedTool, ResponseFormat
    from recto.window.window import Window

_DOOR = {
    "recto.api.blocking": "Desk Talk open",
    "recto.api.desk": "AsyncDesk open_async",
    "recto.api.talk": "AsyncTalk",
    "recto.api.ask_options": "Reply",
    "recto.api.fitting": "FittedMessages fit",
    "recto.api.client_turn": "ExtendedPath PreparedRequest",
    "recto.chat.blocks": "Compaction File Image Quote Text ToolCall ToolResult",
    "recto.chat.message": "Message Usage",
    "recto.sources.source": "Tool",
    "recto.tasks.plan": "TaskPlan",
    "recto.tasks.run": "RunReport TaskRun",
    "recto.transfer.report": "ImportReport",
    "recto.window.window": "Window",
    "recto.window.request": "NamedTool ResponseFormat",
    "recto.errors": "Altered BrokenPlugin Busy DoesNotFit Invalid MessagesLost NoKey NoVectors NotFound Overflow "
    "ProviderError RateLimited RectoError Refused SpendLimit StoreError TooNew Unreachable",
    "recto.events": "Appended ApprovalAsked Branched CompactionProposed ContextCompacted ContextUsage Event "
    "FactLearned FactProposed Noticed NotesQuoted PlanChanged Referenced Replied Retrying RunEnded Sent "
    "SummaryProgress SummaryRequested TextDelta ThinkingDelta ToolCallsPending ToolFinished ToolStarted Working",
}
_MODULES = {name: module for module, names in _DOOR.items() for name in names.split()}

__all__ = [  # noqa: RUF022  by what they are
    "open",
    "open_async",
    "fit",
    "Desk",
    "Talk",
    "AsyncDesk",
    "AsyncTalk",
    "Reply",
    "FittedMessages",
    "ExtendedPath",
    "PreparedRequest",
    "RunReport",
    "TaskPlan",
    "TaskRun",
    "ImportReport",
    "Message",
    "Usage",
    "Window",
    "Tool",
    "NamedTool",
    "ResponseFormat",
    "Text",
    "Image",
    "File",
    "ToolCall",
    "ToolResult",
    "Quote",
    "Compaction",
    "Event",
    "Appended",
    "Branched",
    "Referenced",
    "NotesQuoted",
    "Noticed",
    "ContextUsage",
    "SummaryRequested",
    "SummaryProgress",
    "CompactionProposed",
    "FactProposed",
    "FactLearned",
    "ContextCompacted",
    "Working",
    "Sent",
    "Retrying",
    "TextDelta",
    "ThinkingDelta",
    "ToolStarted",
    "ApprovalAsked",
    "ToolFinished",
    "ToolCallsPending",
    "Replied",
    "PlanChanged",
    "RunEnded",
    "RectoError",
    "NotFound",
    "Invalid",
    "DoesNotFit",
    "SpendLimit",
    "ProviderError",
    "NoKey",
    "RateLimited",
    "Unreachable",
    "Refused",
    "Overflow",
    "NoVectors",
    "BrokenPlugin",
    "StoreError",
    "Busy",
    "TooNew",
    "Altered",
    "MessagesLost",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # `import recto` must stay cheap: the command line shows its help without the store
    if name not in _MODULES:
        raise AttributeError(f"module recto has no attribute {name}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), "open_desk" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
