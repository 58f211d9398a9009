"""Draws values for commands and the chat. Knows no command."""
