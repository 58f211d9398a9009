"""The page: chat in the browser, and beside every reply what went into it. A door like `cli/`: it decides nothing.

NiceGUI is imported here and nowhere else: it takes a second.
"""
