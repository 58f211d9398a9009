"""`recto plugins`: what other packages add."""

import click

from recto.cli import options, show


@click.command()
@click.option("--check", is_flag=True, help="Load each of them, and say which cannot be used.")
@options.as_json_option
def command(check: bool, as_json: bool) -> None:
    """List what other packages add: providers, strategies, embedders, tools.

    A package adds one by an entry point; docs/python.md says how. Without --check none of their code runs.

    Example: recto plugins
    """
    from recto.plugins import installed_plugins  # only here

    found = installed_plugins()
    for each in found:
        problem = each.problem() if check else ""
        if as_json:
            told = {"kind": each.kind, "name": each.name, "package": each.package, "version": each.version}
            show.emit(told | ({"problem": problem or None} if check else {}))
        else:
            works = f"  {problem or 'can be loaded'}" if check else ""
            show.say(f"{each.kind:<10}{each.name:<20}{each.package} {each.version}{works}")
    if not found and not as_json:
        show.note("no package that is installed adds anything")
