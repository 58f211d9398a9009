"""Carrying out a cut: what it covers, its summary, excerpts, and what the user revises. Knows turn/."""
