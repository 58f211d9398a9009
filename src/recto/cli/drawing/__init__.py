"""What commands and the chat put on the screen, drawn from values. Knows no command."""
