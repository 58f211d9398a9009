"""The pages besides the chat, in the order of the menu."""

from recto.desk import AsyncDesk
from recto.web.full_view import add_view
from recto.web.graph_page import GraphView
from recto.web.live import LiveConversations
from recto.web.memory_page import MemoryView
from recto.web.models_page import ModelsView
from recto.web.settings_page import SettingsView
from recto.web.sources_page import SourcesView
from recto.web.stats_page import StatsView
from recto.web.what_if_page import WhatIfView


def add_views(desk: AsyncDesk, live: LiveConversations) -> None:
    add_view("/whatif", WhatIfView, desk, live)
    add_view("/stats", StatsView, desk, live)
    add_view("/graph", GraphView, desk, live)
    add_view("/sources", SourcesView, desk, live)
    add_view("/memory", MemoryView, desk, live)
    add_view("/models", ModelsView, desk, live)
    add_view("/settings", SettingsView, desk, live)
