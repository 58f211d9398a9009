"""The files in deploy/: machines without Docker or systemd cannot run them, but what they say must be so."""

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import yaml

from recto.cli.main import recto
from recto.settings import settings

DEPLOY = Path(__file__).parents[1] / "deploy"
ROOT = DEPLOY.parent
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
# An image of the registry that everybody's Docker asks: a name and a version, no host and no path.
PLAIN_IMAGE = re.compile(r"[a-z0-9]+:[\w.-]+")


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "recto-serve@.service")
    return parser


def steps(name: str) -> list[str]:
    """What follows an instruction of the Dockerfile, each time."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.startswith(f"{name} ")]


def check_command(words: list[str]) -> None:
    """Raises where the command line has no such command or option."""
    group = recto.get_command(click.Context(recto), words[0])
    assert group is not None, words
    group.make_context(words[0], words[1:], resilient_parsing=False)


def test_the_image_is_built_from_a_plain_one_with_files_that_there_are() -> None:
    (image,) = steps("FROM")
    assert PLAIN_IMAGE.fullmatch(image)
    for step in steps("COPY"):
        for source in step.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert set(re.findall(r"\[([\w,]+)\]", steps("RUN")[0])[0].split(",")) == {"serve", "postgres"}


def test_the_image_serves_as_nobody_in_particular() -> None:
    assert steps("USER") == ["recto"]
    assert json.loads(steps("ENTRYPOINT")[0]) == ["recto"]
    check_command(json.loads(steps("CMD")[0]))
    assert steps("EXPOSE") == ["8440"]


def test_compose_has_several_servers_on_one_database() -> None:
    found = compose()
    database, server = found["services"]["database"], found["services"]["recto"]
    assert PLAIN_IMAGE.fullmatch(database["image"])
    assert server["deploy"]["replicas"] > 1
    assert server["depends_on"]["database"]["condition"] == "service_healthy"
    assert set(found["volumes"]) == {mount.partition(":")[0] for mount in database["volumes"]}
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    url = server["environment"]["RECTO_DB"]
    assert url == f"postgresql+psycopg://{database['environment']['POSTGRES_USER']}@database/recto"
    assert "volumes" not in server, "each server has a home of its own"


def test_no_password_and_no_other_registry_is_named() -> None:
    for file in DEPLOY.iterdir():
        text = file.read_text()
        assert all(value.startswith("${") for value in re.findall(r"PASSWORD[:=] ?(\S+)", text.replace(":?", ""))), file
        assert not re.search(r"\b[\w-]+\.(io|com|org|net)/", text), file


def test_every_variable_of_ours_is_one_that_is_read() -> None:
    names = [spec.key for spec in settings.specs()]
    known = {"RECTO_HOME", "RECTO_DB", *(f"RECTO_{name.upper().replace('.', '_')}" for name in names)}
    for file in DEPLOY.iterdir():
        assert set(re.findall(r"\bRECTO_[A-Z_]+", file.read_text())) <= known, file


def test_the_unit_has_its_sections_and_starts_a_command_that_there_is() -> None:
    found = unit()
    assert found.sections() == ["Unit", "Service", "Install"]
    service = found["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("%i", "8440"))
    assert Path(program).name == "recto"
    check_command(words)
    assert service["Environment"] == "RECTO_HOME=/var/lib/recto-%i", "each server has a home of its own"
    assert service["StateDirectory"] == "recto-%i"
    assert int(service["TimeoutStopSec"]) >= 60, "replies that are on their way are finished"
