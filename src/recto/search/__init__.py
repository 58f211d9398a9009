"""How things are found: words, meaning, both fused by rank. Knows neither chat nor store, only items on shelves."""
