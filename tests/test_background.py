"""Background work happens in one thread, however often it is woken, and stands back from turns."""

import threading

import pytest

from recto.base.background import FOREGROUND, BackgroundWorker, Foreground, in_background, is_background


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
