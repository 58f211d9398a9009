"""The pages besides the chat, in the order of the menu."""

from recto.web.full_view import add_view
from recto.web.graph_page import GraphView
from recto.web.memory_page import MemoryView
from recto.web.models_page import ModelsView
from recto.web.page_door import FindDoor
from recto.web.settings_page import SettingsView
from recto.web.sources_page import SourcesView
from recto.web.stats_page import StatsView
from recto.web.what_if_page import WhatIfView


def add_views(find: FindDoor, *, is_whole: bool) -> None:
    add_view("/whatif", WhatIfView, find)
    add_view("/stats", StatsView, find)
    if is_whole:
        add_view("/graph", GraphView, find)
        add_view("/sources", SourcesView, find)
        add_view("/memory", MemoryView, find)
        add_view("/models", ModelsView, find)
        add_view("/settings", SettingsView, find)
