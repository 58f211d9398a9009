"""What templates make of texts and numbers, without a browser."""

from recto.web.stats_page import sources_plot
from recto.web.templates import fill, summary_html


def test_each_line_of_a_summary_stays_a_line_and_what_nobody_said_is_marked() -> None:
    made = summary_html("User: one\nUser: two [unverified]\n\n- a\n- b <b>")
    assert "&lt;b&gt;" in made
    assert "User: one<br" in made
    assert "<mark>[unverified]</mark>" in made
    assert made.count("<li>") == 2


def test_a_plot_of_nothing_is_not_drawn() -> None:
    assert sources_plot([]) is None
    assert "No reply was given a source yet" in fill("stats_sources", period="month", periods=[])
