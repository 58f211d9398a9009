"""What is written down: a folder of documents and the links between them. Knows the disk, not the chat."""
