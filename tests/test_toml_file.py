from pathlib import Path

import pytest

from recto.base import toml_file
from recto.errors import Invalid

FILE = Path("some.toml")


def test_a_value_goes_into_its_table_and_the_rest_stays() -> None:
    text = "# why\n[a]\nb = 1 # so\n"
    assert toml_file.with_value(text, FILE, ["a", "b"], 2) == "# why\n[a]\nb = 2 # so\n"
    assert toml_file.with_value(text, FILE, ["c", "d e"], True) == '# why\n[a]\nb = 1 # so\n\n[c]\n"d e" = true\n'


def test_a_value_is_taken_out_and_one_that_is_not_there_is_none() -> None:
    assert toml_file.without("x = 1\n[a]\nb = 1\n", FILE, ["a", "b"]) == "x = 1\n[a]\n"
    assert toml_file.without("x = 1\n", FILE, ["a", "b"]) is None
    assert toml_file.without("a = 1\n", FILE, ["a", "b"]) is None
    assert toml_file.without("a = 1\n", FILE, ["a"]) == ""


def test_what_is_no_toml_or_no_table_is_named() -> None:
    with pytest.raises(Invalid, match=r"some\.toml is not valid TOML.*fix it first"):
        toml_file.with_value("x = \n", FILE, ["x"], 1)
    with pytest.raises(Invalid, match=r"some\.toml: a must be a table; fix it first"):
        toml_file.with_value("a = 1\n", FILE, ["a", "b"], 1)


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match=r"cannot write .*; nothing was changed"):
        toml_file.write(tmp_path / "file" / "x.toml", "")
    (tmp_path / "x.toml").mkdir()
    with pytest.raises(Invalid, match=r"cannot write .*; nothing was changed"):
        toml_file.write(tmp_path / "x.toml", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "x.toml"]
