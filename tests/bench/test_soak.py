"""A desk that stays open uses no more files and threads after many turns than after a few."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.soak import soaked_desk

WARM_UP, TURNS = 20, 36

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc"),
    pytest.mark.untraced,
]


LIMITED = """
import ctypes, os, platform, resource, sys, time
from collections import Counter
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from bench.soak import soaked_desk
from recto.search.index_file import MAX_IDLE

folder, warm_up, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def resources():
    found = Counter(threads=len(os.listdir("/proc/self/task")))
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + number)
        except FileNotFoundError:  # the list of descriptors itself
            continue
        found[target if target.startswith("/") else target.split(":")[0]] += 1
    return found

# Connections in a pool stay open, and a database has one more for checkpoints; nothing else may grow.
def leaks(now, before):
    return {name: n for name, n in now.items() if n > (MAX_IDLE + 1 if ".db" in name else before[name])}

with soaked_desk(Path(folder), "none") as ask:
    before = Counter()
    for number in range(turns):
        notes = ask(number)
        assert not any("open files" in note for note in notes), notes
        if number < warm_up:
            before |= resources()
    for _ in range(600):  # a background worker comes to rest, a leak stays
        if not (found := leaks(resources(), before)):
            break
        time.sleep(0.1)
    else:
        sys.exit(str(found))
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        told = libc.fopen(sys.argv[4].encode(), b"w")
        libc.malloc_info(0, ctypes.c_void_p(told))
        libc.fclose(ctypes.c_void_p(told))
"""


def test_many_turns_need_no_more_than_sixty_four_files_leak_none_and_share_one_heap(tmp_path: Path) -> None:
    told = tmp_path / "heaps.xml"
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "desk"), str(WARM_UP), str(TURNS), str(told)]
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if told.exists():
        assert told.read_text().count("<heap nr=") == 1


def test_a_closed_desk_leaves_no_file_of_its_home_open(tmp_path: Path) -> None:
    with soaked_desk(tmp_path, "none") as ask:
        for number in range(5):
            ask(number)
    own = [link for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(link.resolve())]
    assert own == []
