"""`python -m recto` is the command `recto`."""

from recto.cli.main import main

main()
