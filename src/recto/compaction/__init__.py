"""Carries out a cut: what it covers, its summary, excerpts, and the user's revisions. Knows turn/."""
