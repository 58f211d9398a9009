"""A desk that stays open uses no more files and threads after many turns than after a few."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from bench.soak import soaked_desk

WARM_UP, TURNS = 20, 60

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc"),
    pytest.mark.untraced,
]


LIMITED = """
import json, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from bench.soak import open_resources, soaked_desk
folder, *samples = sys.argv[1:]
with soaked_desk(Path(folder), "none") as ask:
    for number in range(int(samples[-1])):
        notes = ask(number)
        assert not any("open files" in note for note in notes), notes
        if str(number + 1) in samples:
            print(json.dumps(open_resources()))
"""


def test_sixty_turns_get_by_with_sixty_four_files_and_need_no_more_than_twenty_did(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(WARM_UP), str(TURNS)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (files, threads, _), (more_files, more_threads, _) = map(json.loads, done.stdout.splitlines())
    # a worker may be asleep at one time and awake at the other
    assert more_files <= files + 4
    assert more_threads <= threads + 3


def test_a_closed_desk_leaves_no_file_of_its_home_open(tmp_path: Path) -> None:
    with soaked_desk(tmp_path, "none") as ask:
        for number in range(5):
            ask(number)
    own = [link for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(link.resolve())]
    assert own == []


HEAPS = """
import ctypes, sys
from pathlib import Path
from bench.soak import soaked_desk
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with soaked_desk(Path(sys.argv[1]), "none") as ask:
    for number in range(3):
        ask(number)
    told = libc.fopen(sys.argv[2].encode(), b"w")
    libc.malloc_info(0, ctypes.c_void_p(told))
    libc.fclose(ctypes.c_void_p(told))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="heaps of glibc")
def test_all_threads_of_a_desk_share_one_heap(tmp_path: Path) -> None:
    told = tmp_path / "heaps.xml"
    command = [sys.executable, "-c", HEAPS, str(tmp_path / "desk"), str(told)]
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, check=True, timeout=300)
    assert told.read_text().count("<heap nr=") == 1
