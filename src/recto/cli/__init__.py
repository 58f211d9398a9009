"""The command line: a thin door. Commands parse, call the desk, and show; they decide nothing about the window."""
