"""File lists: every file is named while there is room, by folders where it is scarce, and can be read back."""

from hypothesis import given
from hypothesis import strategies as st

from recto.summary.file_list import list_files, parse_files, with_files

FILES = ("setup.py", "src/tides/table.py", "src/tides/chart.py", "src/tides/port.py")


def test_folders_are_shared_where_room_is_scarce() -> None:
    assert list_files(FILES, 200, len, "Changed: ") == f"Changed: {', '.join(FILES)}"
    assert list_files(FILES, 60, len, "Changed: ") == "Changed: setup.py, src/tides/{table.py,chart.py,port.py}"
    assert list_files(FILES, 50, len, "Changed: ") == "Changed: src/tides/{chart.py,port.py} (+2 more)"
    assert list_files(FILES, 10, len, "Changed: ") == ""


def test_a_path_and_the_same_path_from_the_root_are_one_file() -> None:
    assert with_files(("/repo/a/b.py", "c.py"), ["a/b.py"], 9) == ("c.py", "/repo/a/b.py")
    assert with_files((r"C:\repo\b.cs",), ["b.cs", "xb.cs"], 9) == (r"C:\repo\b.cs", "xb.cs")
    assert list_files(("/repo/x/a/b.py", "x/a/c.py"), 21, len, "") == "/repo/x/a/{b.py,c.py}"


def test_a_folder_is_not_taken_for_another_of_its_name() -> None:
    files = ("/var/log/shop/debug.log", "shop/settings.py", "/var/log/shop/web.log")
    assert list_files(files, 60, len, "") == "/var/log/shop/{debug.log,web.log}, shop/settings.py"


names = st.text("ab.{}, →", min_size=1, max_size=6).map(str.strip).filter(bool)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(st.lists(paths, max_size=12), st.integers(0, 120))
def test_a_list_fits_and_names_only_its_files(found: list[str], limit: int) -> None:
    files = with_files((), found, 100)
    line = list_files(files, limit, len, "")
    assert len(line) <= limit or not line
    if "{" not in line and "," not in line.replace(", ", ""):
        assert set(parse_files(line)) <= set(files)
