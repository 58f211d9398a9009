"""Makes the pages of docs/ that say what the code says: `make docs` writes them, a test compares them."""
