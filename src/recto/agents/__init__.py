"""Agents: who a conversation belongs to. Reads their folders; knows sources and settings, not the chat."""
