"""The pages besides the chat, in the order of the menu."""

from recto.desk import AsyncDesk
from recto.web.full_view import add_view
from recto.web.stats_page import StatsView


def add_views(desk: AsyncDesk) -> None:
    add_view("/stats", StatsView, desk)
