"""Retrieval from the archive: the index of all messages, recalled messages, the recall tool. Knows turn/."""
