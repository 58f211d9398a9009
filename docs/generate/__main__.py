"""`python -m docs.generate`: writes the pages and the stubs, which are made from the code: `make docs`."""

import os

import click
from docs.generate.pages import DOCS, made_pages
from docs.generate.stubs import stubs


@click.command()
def main() -> None:
    for name in [name for name in os.environ if name.startswith("RECTO_")]:
        del os.environ[name]  # the pages show defaults, whatever is set here
    made = stubs() | {DOCS / path: text for path, text in made_pages().items()}
    for file, text in made.items():
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            click.echo(file.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
