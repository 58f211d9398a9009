"""Sources: what may enter the window besides the conversation: rules, references, tools and documents.

Holds them as values, the built-in tools, the choice of sources for a message, and the detection of their use. Knows
the chat and the vault.
"""
