"""Recto is the page the model reads; verso is everything kept behind it."""

__version__ = "0.1.0"
