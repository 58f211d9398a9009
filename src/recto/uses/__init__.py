"""What replies show of the sources they were given, counted, and what to make of it. Knows sources and search."""
