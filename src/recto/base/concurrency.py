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


Work = tuple[asyncio.Future[Any] | None, Callable[[], Any]] | None
# Which of the store's threads the current task and those that it starts use.
_LANE: ContextVar[int] = ContextVar("recto_lane", default=0)


class StoreThread:
    """The thread that uses the store; runs work in the order it was submitted. With a database server there are several
    (`lanes`): tasks that called `use_own_lane` each have the order of their own work, and do not wait for others.

    By hand: a turn comes here ten times, and an executor would take half of the way for itself.
    """

    def __init__(self, lanes: int = 1) -> None:
        self._work: list[SimpleQueue[Work]] = [SimpleQueue() for _ in range(lanes)]
        self._threads: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._is_closed = False

    def use_own_lane(self) -> None:
        """From now on the current task, and those that it starts, work beside the others."""
        if len(self._work) > 1:
            _LANE.set(next(self._numbers))

    async def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Runs the work after all earlier work. Cancelling the caller does not cancel it."""
        return await run_to_completion(self.submit(work, *args, **named))

    def submit(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> asyncio.Future[T]:
        """The same for a caller that does something else before it waits."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._put(future, partial(work, *args, **named)):
            raise RectoError("the desk is closed: open another one")
        return future

    def begin(self, work: Callable[[], None]) -> None:
        """Runs the work after all earlier work, without waiting for it; it must not raise."""
        self._put(None, work)

    def _put(self, future: asyncio.Future[Any] | None, work: Callable[[], Any]) -> bool:
        lane = _LANE.get() % len(self._work)
        with self._lock:
            if self._is_closed:
                return False
            if not self._threads:
                atexit.register(self.close)  # whoever forgets to close a desk loses nothing
            if lane not in self._threads:
                thread = threading.Thread(target=self._run, args=[self._work[lane]], name="recto-store", daemon=True)
                self._threads[lane] = thread
                thread.start()
            self._work[lane].put((future, work))
            return True

    def _run(self, queue: "SimpleQueue[Work]") -> None:
        while (item := queue.get()) is not None:
            future, work = item
            try:
                result, error = work(), None
            except BaseException as why:  # not swallowed: raised where it is awaited
                result, error = None, why
            if future is None and error is not None:
                log.error("work in the store's thread failed", exc_info=error)
            if future is not None:
                with suppress(RuntimeError):  # the loop of the caller is closed
                    future.get_loop().call_soon_threadsafe(_settle, future, result, error)
            del item, future, work, result, error  # not kept alive until the next piece of work

    def close(self) -> None:
        """Ends the threads after the work in their queues."""
        with self._lock:
            threads, self._is_closed = list(self._threads.values()), True
            for queue in self._work:
                queue.put(None)
        for thread in threads:
            thread.join()
        if threads:
            atexit.unregister(self.close)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


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
    """A daemon thread that runs submitted work in order; it starts with the first piece of work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._work.put((future, work))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as why:  # not swallowed: raised where the future is awaited
                    future.set_exception(why)

    def close(self) -> None:
        """Ends the thread after the work in its queue, without waiting for it."""
        self._work.put(None)


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

    @property
    def is_running(self) -> bool:
        return self._loop is not None

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
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        return future

    def soon(self, work: Callable[[], None]) -> None:
        """Runs the work before everything that is begun later; does nothing where the loop is closed."""
        with suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(work)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="recto-servers", daemon=True)
                self._thread.start()
                atexit.register(self._close)
            return self._loop

    def close(self, farewell: Coroutine[Any, Any, None], within_s: float) -> bool:
        """Ends the loop after `farewell`, or without it after `within_s`. Returns whether `farewell` finished."""
        loop = self._loop
        if loop is None:
            farewell.close()
            return True
        atexit.unregister(self._close)
        is_done = False
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_finish(farewell), loop).result(within_s)
            is_done = True
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(JOIN_TIMEOUT_S)
        for future in list(self._begun):  # after a farewell that did not end; nobody else would ever answer
            future.cancel()
        if not self._thread.is_alive():
            loop.close()
        self._loop = None
        return is_done


async def _finish(farewell: Coroutine[Any, Any, None]) -> None:
    await farewell
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


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
