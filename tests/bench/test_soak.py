"""A desk that stays open uses no more files and threads after many turns than after a few."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.soak import open_resources, soaked_desk

WARM_UP, TURNS = 20, 60

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")


def test_open_files_and_threads_do_not_grow_with_the_turns(tmp_path: Path) -> None:
    with soaked_desk(tmp_path, "none") as ask:
        for number in range(WARM_UP):
            ask(number)
        files, threads, _ = open_resources()
        for number in range(WARM_UP, TURNS):
            ask(number)
        more_files, more_threads, _ = open_resources()
    # a worker may be asleep at one time and awake at the other
    assert more_files <= files + 4
    assert more_threads <= threads + 3


LIMITED = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from bench.soak import soaked_desk
with soaked_desk(Path(sys.argv[1]), "none") as ask:
    for number in range(60):
        notes = ask(number)
        assert not any("open files" in note for note in notes), notes
"""


def test_sixty_turns_get_by_with_sixty_four_files(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_a_closed_desk_leaves_no_file_of_its_home_open(tmp_path: Path) -> None:
    with soaked_desk(tmp_path, "none") as ask:
        for number in range(5):
            ask(number)
    own = [link for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(link.resolve())]
    assert own == []
