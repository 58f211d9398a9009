"""Threads, locks and tasks."""

import asyncio
import atexit
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from recto.errors import RectoError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


async def run_to_completion(future: asyncio.Future[T]) -> T:
    """Wait until the future is done; a cancellation of the caller is raised only then."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


@asynccontextmanager
async def entered(context: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a blocking context without stopping the loop."""
    with ExitStack() as stack:
        worker = WorkerThread("recto-waiting")
        try:
            yield await run_to_completion(asyncio.wrap_future(worker.submit(partial(stack.enter_context, context))))
        finally:
            await run_to_completion(asyncio.wrap_future(worker.submit(stack.close)))
            worker.close()


class WorkerThread:
    """A daemon thread that runs work in order; it starts with the first piece of work.

    Not an executor: a turn uses the store's thread ten times, and an executor's overhead would be half of that time.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def begin(self, work: Callable[[], None]) -> None:
        """Queue work, which must not raise, without waiting."""
        self._work.put(work)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self.begin(partial(_fulfil, future, work))
        return future

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # do not keep it alive until the next piece of work

    def close(self, *, wait: bool = False) -> None:
        """End the thread after the queued work."""
        self._work.put(None)
        if wait and self._thread:
            self._thread.join()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as why:  # not swallowed: raised where the future is awaited
            future.set_exception(why)


# The store's thread of the current task and those that it starts.
_LANE: ContextVar[int] = ContextVar("recto_lane", default=0)


class StoreThread:
    """The thread that uses the store; runs work in order. With a database server there are several (`lanes`): each task
    that called `use_own_lane` has its own order, and does not wait for others."""

    def __init__(self, lanes: int = 1) -> None:
        self._threads = [WorkerThread("recto-store") for _ in range(lanes)]
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._is_used = self._is_closed = False

    def use_own_lane(self) -> None:
        """Give the current task, and those that it starts, a separate lane."""
        if len(self._threads) > 1:
            _LANE.set(next(self._numbers))

    async def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run the work after all earlier work. Cancelling the caller does not cancel it."""
        return await run_to_completion(self.submit(work, *args, **named))

    def submit(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> asyncio.Future[T]:
        """Like `do`, for a caller that does something else before it waits."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._put(partial(_answer, future, partial(work, *args, **named))):
            raise RectoError("the desk is closed: open another one")
        return future

    def begin(self, work: Callable[[], None]) -> None:
        """Run the work after all earlier work, without waiting; errors are logged."""
        self._put(partial(_logged, work))

    def _put(self, work: Callable[[], None]) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            if not self._is_used:
                self._is_used = True
                atexit.register(self.close)  # nothing is lost if a desk is not closed
            self._threads[_LANE.get() % len(self._threads)].begin(work)
            return True

    def close(self) -> None:
        """End the threads after the queued work."""
        with self._lock:
            self._is_closed = True
        for thread in self._threads:
            thread.close(wait=True)
        atexit.unregister(self.close)


def _answer(future: asyncio.Future[T], work: Callable[[], T]) -> None:
    """Run the work, and settle the future in the caller's loop."""

    def settle(set_outcome: Callable[[Any], None], outcome: object) -> None:
        if not future.done():
            set_outcome(outcome)

    try:
        outcome = partial(settle, future.set_result, work())
    except BaseException as why:  # not swallowed: raised where it is awaited
        outcome = partial(settle, future.set_exception, why)
    with suppress(RuntimeError):  # the loop of the caller is closed
        future.get_loop().call_soon_threadsafe(outcome)


def _logged(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException:
        log.exception("work in the store's thread failed")


class FileLock:
    """A lock on a file that tells its users whether the file is still open."""

    def __init__(self) -> None:
        self._lock, self._is_open = threading.Lock(), True

    def __enter__(self) -> bool:
        """Returns True if the file may still be used."""
        self._lock.acquire()
        return self._is_open

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Mark the file as closed; the caller closes it inside the block."""
        with self._lock:
            self._is_open = False
            yield


# Loading a model takes longest: more than ten seconds at low priority. A hanging library must not delay the exit for
# ever.
EXIT_TIMEOUT_S = 60.0


class ExitGuard:
    """Delays the process's exit until calls into a native library have returned, and refuses new ones."""

    def __init__(self) -> None:
        self._inside = 0
        self._is_shut = False
        self._changed = threading.Condition()
        atexit.register(self.shut)

    @contextmanager
    def passed(self) -> Iterator[bool]:
        """Yield whether the call may run; the exit waits for a running call."""
        with self._changed:
            is_in = not self._is_shut
            self._inside += is_in
        try:
            yield is_in
        finally:
            with self._changed:
                self._inside -= is_in
                self._changed.notify_all()

    def shut(self) -> None:
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: self._inside == 0, EXIT_TIMEOUT_S)


JOIN_TIMEOUT_S = 2.0


class LoopThread:
    """An event loop in a separate thread, started on first use and closed before the program exits."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self._begun = set[Future[Any]]()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in the thread and wait in the caller's loop; cancelling the caller cancels the work."""
        try:
            return await asyncio.wrap_future(self.begin(work))
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller and caller.cancelling():
                raise
            raise RectoError("the MCP servers were stopped before an answer came") from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="recto-servers", daemon=True)
                self._thread.start()
                atexit.register(self._close)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        return future

    def soon(self, work: Callable[[], None]) -> None:
        """Run the work before anything started later; does nothing if the loop is closed."""
        with suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(work)

    def close(self, farewell: Coroutine[Any, Any, None], within_s: float) -> bool:
        """End the loop after `farewell`, or after `within_s`. Returns True if `farewell` finished."""
        loop = self._loop
        if loop is None:
            farewell.close()
            return True
        atexit.unregister(self._close)

        async def finish() -> None:
            await farewell
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        is_done = False
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(finish(), loop).result(within_s)
            is_done = True
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(JOIN_TIMEOUT_S)
        for future in list(self._begun):  # after an unfinished farewell nobody else would answer
            future.cancel()
        if not self._thread.is_alive():
            loop.close()
        self._loop = None
        return is_done


class TaskSet:
    """Holds references to running tasks, so that they are not garbage-collected."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, patience_s: float = 0.0) -> None:
        """Cancels the tasks that still run after `patience_s`."""
        tasks = [task for task in self._tasks if task.get_loop() is asyncio.get_running_loop()]
        if tasks and patience_s:
            await asyncio.wait(tasks, timeout=patience_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
