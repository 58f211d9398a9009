"""Figures, not tests: each module prints a table of what it measured, with the peer beside us in the same run."""
