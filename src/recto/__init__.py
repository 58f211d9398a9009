"""Recto is the page the model reads; verso is everything kept behind it.

`open()` and `open_async()` give a desk; docs/python.md shows what a desk and its talks can do. `__init__.pyi`, which
`make docs` writes, has these names for type checkers and editors.
"""

__version__ = "0.1.0"

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
__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> object:
    # `import recto` must stay cheap: the command line shows its help without the store
    if name not in _MODULES:
        raise AttributeError(f"module recto has no attribute {name}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), "open_desk" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
