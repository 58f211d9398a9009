"""Sources: what may enter the window in addition to the conversation: rules, references, tools and documents.

Holds them as values, the vault's tools, the choice of sources for a message, and the detection of their use. Knows the
chat and the vault.
"""
