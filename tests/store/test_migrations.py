"""A store of the first release opens in place; an older one is refused in a sentence."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import inspect, text
from tests.store.conftest import make_older
from tests.store.golden.home import restore_dump, unpack_world

from recto.errors import StoreError
from recto.store.check import check_store
from recto.store.migrations import REVISIONS
from recto.store.store import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    return tmp_path / "recto.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")()


def shape(store: Store) -> dict[str, object]:
    """Of each table the columns in order, the keys and the indexes."""
    with store.database.read() as connection:
        found = inspect(connection)
        return {
            name: (
                [(each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns(name)],
                found.get_pk_constraint(name)["constrained_columns"],
                sorted(each["referred_table"] for each in found.get_foreign_keys(name)),
                sorted(
                    (each["name"] or "", each["column_names"], each["unique"], _conditions(each["dialect_options"]))
                    for each in found.get_indexes(name)
                ),
            )
            for name in found.get_table_names()
        }


def _conditions(options: Mapping[str, object]) -> list[str]:
    return sorted(f"{name} {value}" for name, value in options.items())


def test_a_store_of_the_first_release_gets_the_shape_of_a_new_one(place: Path | str) -> None:
    with Store(place) as new, new.database.write() as connection:
        expected = shape(new)
        id = new.tree.create(title="Boats").id
        make_older(connection)
    with Store(place) as opened:
        assert shape(opened) == expected
        assert [each.id for each in opened.tree.conversations()] == [id]
        assert check_store(opened).problems == ()
        with opened.database.read() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == REVISIONS[-1]


def test_the_golden_home_gets_the_shape_of_a_new_store(tmp_path: Path) -> None:
    with Store(unpack_world(tmp_path) / "recto.db") as golden, Store(tmp_path / "new.db") as new:
        assert shape(golden) == shape(new)


def test_the_golden_home_in_postgresql_gets_the_shape_of_a_new_store(postgresql: Callable[[], str]) -> None:
    restore_dump(url := postgresql())
    with Store(url) as golden, Store(postgresql()) as new:
        assert shape(golden) == shape(new)


def test_an_older_store_is_refused(place: Path | str) -> None:
    with Store(place) as store, store.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0017'"))
    with pytest.raises(StoreError, match=r"pre-release Recto \(schema 0017; .* export its conversations"):
        Store(place)
