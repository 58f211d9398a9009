"""The page: chat in the browser, with the context of every reply beside it. Like `cli/`, it decides nothing.

Only this package imports NiceGUI, which takes a second.
"""
