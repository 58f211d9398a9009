"""What may enter the window besides the conversation: tools now; rules and references later. Knows the chat."""
