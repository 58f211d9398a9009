"""Commands that need not import first: one process has imported everything, and forks for each of them.

A command is a process with a terminal or pipes, signals and surroundings of its own, and runs the real `main`. Imports
take longer than most tests; starting from nothing is tested by those that use `spawn`. Run as a program, this is the
process that forks.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryFile
from typing import Any, TextIO

import click

LONGEST_ORDER = 150_000  # bytes; a packet must fit into the buffer of a socket


@dataclass(frozen=True, slots=True)
class StartedCommand:
    process: int
    ended: int
    """A pipe with the wait status, once there is one."""

    def wait(self) -> int:
        """The exit code."""
        with open(self.ended, "rb") as pipe:
            return os.waitstatus_to_exitcode(int(pipe.readline()))


class PipedCommand:
    """A command whose output is read through a pipe; used as a `subprocess.Popen`."""

    def __init__(self, command: StartedCommand, stdout: TextIO) -> None:
        self._command, self.stdout = command, stdout
        self._code: int | None = None

    def send_signal(self, number: int) -> None:
        if self._code is None:  # else its number may be another's by now
            with suppress(ProcessLookupError):
                os.kill(self._command.process, number)

    def wait(self) -> int:
        if self._code is None:
            self._code = self._command.wait()
        return self._code

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def end(self) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait()
        self.stdout.close()


class Preloaded:
    def __init__(self, *modules: str) -> None:
        """Has imported these modules too, or run these files."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-P", __file__, str(theirs.fileno()), *modules]
        self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd="/")
        theirs.close()

    def start(self, args: tuple[str, ...], screen: int) -> StartedCommand:
        """Runs `recto` with these arguments, in the surroundings of the caller, at a terminal."""
        return self._start(args, [screen], os.environ, Path.cwd())

    def run(self, *args: str, input: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """The same without a terminal, to its end."""
        with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
            given.write(input)
            given.seek(0)
            streams = [each.fileno() for each in (given, output, errors)]
            code = self._start(args, streams, os.environ, Path.cwd()).wait()
            for each in (output, errors):
                each.seek(0)
            return subprocess.CompletedProcess(args, code, output.read(), errors.read())

    def start_piped(
        self, *args: str, environment: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> PipedCommand:
        """The same without waiting: nothing to read, its output in a pipe, and what goes wrong among ours."""
        output, theirs = os.pipe()
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), theirs, sys.__stderr__.fileno() if sys.__stderr__ else theirs]
            started = self._start(args, streams, environment or os.environ, folder or Path.cwd())
        os.close(theirs)
        return PipedCommand(started, os.fdopen(output, encoding="utf-8"))

    def _start(
        self, args: tuple[str, ...], streams: list[int], environment: Mapping[str, str], folder: Path
    ) -> StartedCommand:
        order = json.dumps({"args": args, "environment": dict(environment), "folder": str(folder)}).encode()
        assert len(order) <= LONGEST_ORDER
        ended, theirs = os.pipe()
        socket.send_fds(self._socket, [order], [*streams, theirs])
        os.close(theirs)
        number = bytearray()
        while not number.endswith(b"\n"):  # byte by byte: what follows is for who waits
            read = os.read(ended, 1)
            assert read, "the process that forks has ended"
            number += read
        return StartedCommand(int(number), ended)

    def close(self) -> None:
        self._socket.close()
        self._server.wait()


def main() -> None:
    from recto.cli.main import main as command

    asked = socket.socket(fileno=int(sys.argv[1]))
    _preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait for commands are reaped by the system
    while True:
        order, files, _, _ = socket.recv_fds(asked, LONGEST_ORDER, 4)
        if not order:
            return
        if not os.fork():
            asked.close()
            _begin(json.loads(order), *files)
            break
        for each in files:
            os.close(each)
    command()


def _preload() -> None:
    from recto.cli.main import COMMANDS, recto
    from recto.providers.model import vocabulary

    for name in COMMANDS:
        recto.get_command(click.Context(recto), name)
    for name in ("recto.cli.screen", "recto.api.blocking", "recto.serve.server", *sys.argv[2:]):
        if name.endswith(".py"):
            run_path(name, run_name="__main__")
        else:
            import_module(name)
    # its table of merges is made for the first word that is not one token: a third of a second
    vocabulary("o200k_base")("Defenestration, pragmatically speaking.")
    # what another thread holds would be held for ever in a fork
    assert len(os.listdir("/proc/self/task")) == 1, "importing has started threads"


def _begin(order: dict[str, Any], *files: int) -> None:
    """Becomes the command, below a process that tells how it ended. The files are a terminal or three streams, and
    where that is told."""
    *streams, ended = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if process := os.fork():
        for each in streams:
            os.close(each)
        os.write(ended, b"%d\n" % process)
        os.write(ended, b"%d\n" % os.waitpid(process, 0)[1])
        os._exit(0)
    os.close(ended)
    is_terminal = len(streams) == 1
    if is_terminal:
        os.login_tty(streams[0])
    for number, each in enumerate(() if is_terminal else streams):
        os.dup2(each, number)
        os.close(each)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        before = getattr(sys, name)
        mode = "w" if number else "r"
        buffering = 1 if is_terminal or number == 2 else -1  # as Python does it: what is not flushed waits in a pipe
        setattr(sys, name, os.fdopen(number, mode, buffering, "utf-8", before.errors, closefd=False))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever a shell had it do in the background
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    time.tzset()
    sys.argv = ["recto", *order["args"]]


if __name__ == "__main__":
    main()
