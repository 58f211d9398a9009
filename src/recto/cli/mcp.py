"""`recto mcp`: notes, conversations and memory for other assistants, as an MCP server."""

import click

from recto.cli import options, show


@click.command()
@click.option("--vault", metavar="DIR", help="Folder of notes to offer (default: the setting `vault`).")
@click.option("--port", type=click.IntRange(0, 65535), help="Serve over HTTP at this port; 0 takes a free one.")
@click.option("--allow-write", is_flag=True, help="Offer the tools that write notes and remember or forget facts.")
@options.set_option
def command(vault: str | None, port: int | None, allow_write: bool, assignments: tuple[str, ...]) -> None:
    """Let other assistants search and read your notes, conversations and memory, as an MCP server.

    Without --port it speaks over standard input and output: name `recto mcp` as the command of a server where your
    assistant lists its MCP servers. With --port it serves this machine alone.

    Example: recto mcp --vault notes
    """
    from recto.serve.server import launch_mcp  # Starlette and uvicorn: only to serve

    settings = dict(options.assignment("--set", text) for text in assignments)
    launch_mcp(port=port, vault=vault, allow_write=allow_write, settings=settings, tell=show.say)
