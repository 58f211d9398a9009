"""Background work happens in one thread, however often it is woken, and stands back from turns."""

import threading
import time

import pytest

from recto.base import background
from recto.base.background import FOREGROUND, BackgroundWorker, Foreground, ForegroundTurn, in_background, is_background


def test_a_worker_that_is_woken_again_and_again_has_one_thread() -> None:
    threads: set[int] = set()
    stepped = threading.Semaphore(0)

    def step() -> bool:
        threads.add(threading.get_ident())
        stepped.release()
        return False

    worker = BackgroundWorker(step, "test")
    for _ in range(20):
        worker.wake()
        assert stepped.acquire(timeout=60)
    worker.close()
    assert len(threads) == 1
    assert not any(thread.name == "test" for thread in threading.enumerate())


def test_a_closed_worker_does_nothing_more() -> None:
    steps: list[int] = []

    def step() -> bool:
        steps.append(1)
        return False

    worker = BackgroundWorker(step, "test")
    worker.close()
    worker.wake()
    assert not steps


def test_a_worker_that_is_closed_as_it_begins_ends_at_once() -> None:
    begun = threading.Event()

    class ClosedAsItBegins(BackgroundWorker):
        def _await_quiet(self) -> None:
            begun.set()
            assert self._stopped.wait(60)
            with self._lock:  # all that `close` tells it has been told
                pass
            super()._await_quiet()

    worker = ClosedAsItBegins(lambda: False, "test", delay_s=0.001)
    worker.wake()
    assert begun.wait(60)
    worker.close(timeout_s=60)
    assert not any(thread.name == "test" for thread in threading.enumerate())


def test_background_work_waits_for_a_turn_and_goes_on_after_it() -> None:
    stepped = threading.Event()
    worker = BackgroundWorker(lambda: stepped.set() or False, "test")  # type: ignore[func-returns-value]
    with FOREGROUND.begin() as turn:
        worker.wake()
        turn.end()
        turn.end()  # once is enough
        assert stepped.wait(60)
    worker.close()


def test_a_turn_that_never_ends_does_not_stop_background_work() -> None:
    stepped = threading.Event()
    worker = BackgroundWorker(lambda: stepped.set() or False, "test")  # type: ignore[func-returns-value]
    with FOREGROUND.begin():
        worker.wake()
        assert stepped.wait(60)
    worker.close()


def test_a_worker_with_a_delay_steps_once_for_many_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    stepped, woken = threading.Event(), threading.Event()

    def step() -> bool:
        steps.append(1)
        stepped.set()
        return False

    worker = BackgroundWorker(step, "test", delay_s=0.05)
    monkeypatch.setattr(worker._stopped, "wait", lambda _: woken.wait(60) and worker._stopped.is_set())
    for _ in range(5):
        worker.wake()
    woken.set()  # only now the delay begins to pass
    assert stepped.wait(60)
    worker.close()
    assert len(steps) == 1


def test_a_turn_that_its_client_has_left_is_waited_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    foreground = Foreground()
    monkeypatch.setattr(Foreground, "MAX_TURN_S", 0.0)
    monkeypatch.setattr(Foreground, "MAX_WAIT_S", 3600.0)
    left = foreground.begin()
    foreground.wait()  # else it would wait for an hour
    left.end()
    foreground.wait()


def test_background_work_waits_a_moment_after_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    foreground, now, waited = Foreground(), [100.0], list[float]()
    monkeypatch.setattr("recto.base.background.time.monotonic", lambda: now[0])

    def wait(timeout_s: float) -> None:
        waited.append(timeout_s)
        now[0] += timeout_s

    monkeypatch.setattr(foreground._changed, "wait", wait)
    foreground.begin().end()
    foreground.wait(quiet_s=0)
    assert not waited
    foreground.wait(quiet_s=0.1)
    assert waited == [pytest.approx(0.1)]
    foreground.wait(quiet_s=0.1)
    assert len(waited) == 1


def test_where_turn_follows_turn_background_work_goes_on_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    foreground, now, at_work = Foreground(), [100.0], list[ForegroundTurn]()
    monkeypatch.setattr("recto.base.background.time.monotonic", lambda: now[0])

    def wait(timeout_s: float) -> None:  # a turn of 30 ms, a gap of 50, and so on
        now[0] += min(timeout_s, 0.03 if at_work else 0.05)
        if at_work:
            at_work.pop().end()
        elif now[0] < foreground._ended + timeout_s or now[0] >= foreground._ended + 0.05:
            at_work.append(foreground.begin())

    monkeypatch.setattr(foreground._changed, "wait", wait)
    at_work.append(foreground.begin())
    foreground.wait()
    assert not at_work
    assert now[0] < 100 + Foreground.MAX_WAIT_S


def test_a_worker_that_waits_for_a_turn_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Foreground, "MAX_WAIT_S", 3600.0)
    monkeypatch.setattr(Foreground, "MAX_TURN_S", 3600.0)
    steps: list[int] = []
    worker = BackgroundWorker(lambda: bool(steps.append(1)), "test")  # type: ignore[func-returns-value]
    with FOREGROUND.begin():
        worker.wake()
        worker.close(timeout_s=60)
        assert not any(thread.name == "test" for thread in threading.enumerate())
    assert not steps


def test_what_can_be_stopped_is_stopped_when_a_turn_begins_and_not_before_or_after() -> None:
    foreground, stopped = Foreground(), list[int]()
    foreground.begin().end()
    with foreground.stopping(lambda: stopped.append(1)):
        assert not stopped
        foreground.begin().end()
        assert stopped == [1]
    foreground.begin().end()
    assert stopped == [1]


def test_a_thread_knows_whether_anybody_waits_for_it() -> None:
    seen: list[bool] = []
    stepped = threading.Event()

    def step() -> bool:
        seen.append(is_background())
        stepped.set()
        return False

    worker = BackgroundWorker(step, "test")
    worker.wake()
    assert stepped.wait(60)
    worker.close()
    assert seen == [True]
    assert not is_background()
    with in_background():
        assert is_background()
    assert not is_background()


def test_a_worker_that_is_woken_often_gives_memory_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    released, done = [], threading.Event()
    monkeypatch.setattr(background, "RELEASE_EVERY", 2)
    monkeypatch.setattr(background, "release_memory", lambda: released.append(1))

    def step() -> bool:
        done.set()
        return False

    worker = BackgroundWorker(step, "test", quiet_s=0)
    for _ in range(5):
        done.clear()
        worker.wake()
        assert done.wait(60)
        while worker._woken.is_set():  # the next waking is another one
            time.sleep(0.001)
    worker.close()
    assert len(released) == 2


def test_memory_can_be_given_back_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    background.release_memory()
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    background.release_memory()


def test_a_number_of_heaps_that_the_user_chose_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def mallopt(self, parameter: int, value: int) -> int:
            asked.append(value)
            return 1

    monkeypatch.setattr("ctypes.CDLL", lambda name: Library())
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    background.share_heap()
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    background.share_heap()
    assert asked == [1]


def test_a_worker_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """As when the disk is full for a while."""
    stepped, failures = threading.Semaphore(0), [OSError(28, "No space left on device"), ValueError("odd")]

    def step() -> bool:
        stepped.release()
        if failures:
            raise failures.pop()
        return False

    worker = BackgroundWorker(step, "test")
    for _ in range(3):
        worker.wake()
        assert stepped.acquire(timeout=60)
    worker.close()
    assert [record.message for record in caplog.records] == ["test failed", "test failed"]
