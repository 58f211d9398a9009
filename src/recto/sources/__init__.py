"""What may enter the window besides the conversation: rules, references, tools and documents, as values; how a
conversation has them; and the tools that are built in. Knows the chat and the vault."""
