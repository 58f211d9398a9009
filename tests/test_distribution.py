"""The distribution's name: what our hints tell users to install is ours, with extras that it has."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import recto

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HINT = re.compile(r"['`]([\w-]*recto[\w-]*)\[(\w+)\]")


def test_every_hint_to_install_an_extra_names_our_distribution_and_an_extra_of_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    hints = {hint for page in pages for hint in HINT.findall(page.read_text("utf-8"))}
    assert hints == {(PROJECT["name"], extra) for extra in PROJECT["optional-dependencies"]}


def test_the_package_has_the_version_of_its_distribution() -> None:
    assert version(PROJECT["name"]) == recto.__version__ == PROJECT["version"]
