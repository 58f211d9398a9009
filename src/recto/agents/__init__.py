"""Agents: reads their folders. Knows sources and settings, not the chat."""
