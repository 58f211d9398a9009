"""Who a conversation belongs to: agents, read from their folders. Knows sources and settings, not the chat."""
