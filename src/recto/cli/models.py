"""`recto models`: who can answer, what is known about them, and fetching the one that runs here."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from recto import locations
from recto.cli import options, show
from recto.providers.model import ASSUMED_WINDOW, Model


@click.group()
def command() -> None:
    """See which models there are, and fetch the built-in one.

    Example: recto models show
    """


@command.command("list")
@click.argument("word", required=False, default="")
@options.as_json_option
def list_models(word: str, as_json: bool) -> None:
    """List the models that are known, or those with WORD in their name.

    Example: recto models list gpt-4o
    """
    from recto.providers.catalog import ModelCatalog  # only what is listed

    catalog = ModelCatalog(locations.find_home(), locations.find_project(Path.cwd()))
    found = [model for model in catalog.all() if word.lower() in model.name.lower()]
    for model in sorted(found, key=lambda model: (model.provider != "embedded", model.name)):
        if as_json:
            show.emit(_to_json(model))
        else:
            show.say(f"{model.name:<48} {_window(model):<28} {_prices(model)}".rstrip())


def _to_json(model: Model) -> dict[str, Any]:
    return {name: value for name, value in asdict(model).items() if name != "control"}


def _window(model: Model) -> str:
    return f"{model.window:,} ({model.window_from})" if model.window else "unknown window"


def _prices(model: Model) -> str:
    """US dollars for a million tokens, in and out."""
    prices = model.prices
    if prices is None or prices.input is None or prices.output is None:
        return "no prices"
    return f"${prices.input:g} in, ${prices.output:g} out"


@command.command("show")
@click.argument("name", required=False)
@options.settings_options
@options.as_json_option
def show_model(name: str | None, flags: dict[str, str], as_json: bool) -> None:
    """Show what is known about a model (by default the current one), and where that is from.

    Example: recto models show openai:gpt-4o
    """
    with options.open_desk(flags) as desk:
        wanted = name or desk.settings.model
        model = desk.model(wanted)
    if as_json:
        show.emit(_to_json(model))
        return
    for label, value in _facts(model):
        show.say(f"{label:<12}{value}")


def _facts(model: Model) -> list[tuple[str, str]]:
    longest = f"{model.max_output:,} tokens ({model.max_output_from})" if model.max_output else "unknown"
    prices = f"{_prices(model)} for a million tokens ({model.prices_from})" if model.prices else "unknown"
    counts = "exact" if model.exact else "estimated"
    factor = f" × {model.factor:g}" if model.factor != 1 else ""
    return [
        ("model", model.name),
        (
            "window",
            f"{model.window:,} tokens ({model.window_from})"
            if model.window
            else f"unknown ({ASSUMED_WINDOW:,} assumed)",
        ),
        ("reply", f"at most {longest}" if model.max_output else longest),
        ("prices", prices),
        ("counts", f"{counts}, with {model.tokenizer}{factor}"),
        ("tools", "can be called" if model.tools else "cannot be called"),
        ("takes", ", ".join(["text", *["images"] * model.images, *["PDFs"] * model.files])),
    ]


@command.command("pull")
@options.as_json_option
def pull(as_json: bool) -> None:
    """Fetch the built-in model's weights (98 MB), unless they are here already.

    Example: recto models pull
    """
    from recto.providers.embedded import pull_weights  # only for fetching

    path = pull_weights(locations.find_home(), lambda text: click.echo(show.visible(text), err=True))
    if as_json:
        show.emit({"model": "embedded:smollm2", "path": str(path)})
    else:
        show.say(f"embedded:smollm2 is ready: {path}")
