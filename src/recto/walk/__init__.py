"""The steps of the walk, a file each: what engine.py puts in order. Knows all rooms above it; no door."""
