"""Threads, locks and tasks. Nothing here knows the purpose of the work it runs."""

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
    """Waits until the future is done. If the caller is cancelled meanwhile, the cancellation is raised after that."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


@asynccontextmanager
async def entered(context: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enters a blocking context, which may wait for long, and leaves it, without stopping the loop."""
    with ExitStack() as stack:
        worker = WorkerThread("recto-waiting")
        try:
            yield await run_to_completion(asyncio.wrap_future(worker.submit(partial(stack.enter_context, context))))
        finally:
            await run_to_completion(asyncio.wrap_future(worker.submit(stack.close)))
            worker.close()


class WorkerThread:
    """A daemon thread that runs work in order; it starts with the first piece of work.

    By hand, because a turn comes to the store's ten times, and an executor would take half of the way for itself.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def begin(self, work: Callable[[], None]) -> None:
        """Does not wait for the work, which must not raise."""
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
            del work  # not kept alive until the next piece of work

    def close(self, *, wait: bool = False) -> None:
        """Ends the thread after the work in its queue."""
        self._work.put(None)
        if wait and self._thread:
            self._thread.join()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as why:  # not swallowed: raised where the future is awaited
            future.set_exception(why)


# Which of the store's threads the current task and those that it starts use.
_LANE: ContextVar[int] = ContextVar("recto_lane", default=0)


class StoreThread:
    """The thread that uses the store; runs work in the order it was submitted. With a database server there are several
    (`lanes`): tasks that called `use_own_lane` each have the order of their own work, and do not wait for others."""

    def __init__(self, lanes: int = 1) -> None:
        self._threads = [WorkerThread("recto-store") for _ in range(lanes)]
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._is_used = self._is_closed = False

    def use_own_lane(self) -> None:
        """From now on the current task, and those that it starts, work beside the others."""
        if len(self._threads) > 1:
            _LANE.set(next(self._numbers))

    async def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Runs the work after all earlier work. Cancelling the caller does not cancel it."""
        return await run_to_completion(self.submit(work, *args, **named))

    def submit(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> asyncio.Future[T]:
        """The same for a caller that does something else before it waits."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._put(partial(_answer, future, partial(work, *args, **named))):
            raise RectoError("the desk is closed: open another one")
        return future

    def begin(self, work: Callable[[], None]) -> None:
        """Runs the work after all earlier work, without waiting for it; an error is logged."""
        self._put(partial(_logged, work))

    def _put(self, work: Callable[[], None]) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            if not self._is_used:
                self._is_used = True
                atexit.register(self.close)  # nothing is lost where a desk is not closed
            self._threads[_LANE.get() % len(self._threads)].begin(work)
            return True

    def close(self) -> None:
        """Ends the threads after the work in their queues."""
        with self._lock:
            self._is_closed = True
        for thread in self._threads:
            thread.close(wait=True)
        atexit.unregister(self.close)


def _answer(future: asyncio.Future[T], work: Callable[[], T]) -> None:
    """Runs the work, and settles the future in the loop of its caller."""

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
        """Returns whether the file may still be used."""
        self._lock.acquire()
        return self._is_open

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Marks the file as closed; the caller closes it inside the block."""
        with self._lock:
            self._is_open = False
            yield


# To load a model takes longest: more than ten seconds where everything else goes first. A library that hangs must not
# delay the exit for ever.
EXIT_TIMEOUT_S = 60.0


class ExitGuard:
    """Delays the exit of the process until calls into a native library have returned, and refuses new ones."""

    def __init__(self) -> None:
        self._inside = 0
        self._is_shut = False
        self._changed = threading.Condition()
        atexit.register(self.shut)

    @contextmanager
    def passed(self) -> Iterator[bool]:
        """Yields whether the call may run; the exit waits for a call that runs."""
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
    """An event loop in a thread of its own, started on first use and closed before the program exits."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self._begun = set[Future[Any]]()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work in the thread and waits in the caller's loop; cancelling the caller cancels the work."""
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
        """Runs the work before everything that is begun later; does nothing where the loop is closed."""
        with suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(work)

    def close(self, farewell: Coroutine[Any, Any, None], within_s: float) -> bool:
        """Ends the loop after `farewell`, or without it after `within_s`. Returns whether `farewell` finished."""
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
        for future in list(self._begun):  # after a farewell that did not end; nobody else would ever answer
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

    async def close(self) -> None:
        """Cancels the tasks that are still running."""
        tasks = [task for task in self._tasks if task.get_loop() is asyncio.get_running_loop()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
