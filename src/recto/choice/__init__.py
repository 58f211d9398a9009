"""Which sources a message needs, by words and by meaning. Knows sources, search and how notes are cut."""
