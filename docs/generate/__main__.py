"""`python -m docs.generate`: writes every page that is made from the code. `make docs` runs it."""

import os

import click
from docs.generate.pages import DOCS, made_pages


@click.command()
def main() -> None:
    for name in [name for name in os.environ if name.startswith("RECTO_")]:
        del os.environ[name]  # the pages show defaults, whatever is set here
    for path, text in made_pages().items():
        file = DOCS / path
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            click.echo(f"docs/{path}")


if __name__ == "__main__":
    main()
