"""Background work happens in one thread, however often it is woken."""

import threading

import pytest

from recto.concurrency import FOREGROUND, BackgroundWorker, Foreground


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
        assert stepped.acquire(timeout=10)
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


def test_background_work_waits_for_a_turn_and_goes_on_after_it() -> None:
    stepped = threading.Event()
    worker = BackgroundWorker(lambda: stepped.set() or False, "test")  # type: ignore[func-returns-value]
    with FOREGROUND.begin() as turn:
        worker.wake()
        turn.end()
        turn.end()  # once is enough
        assert stepped.wait(10)
    worker.close()


def test_a_turn_that_never_ends_does_not_stop_background_work() -> None:
    stepped = threading.Event()
    worker = BackgroundWorker(lambda: stepped.set() or False, "test")  # type: ignore[func-returns-value]
    with FOREGROUND.begin():
        worker.wake()
        assert stepped.wait(10)
    worker.close()


def test_a_worker_with_a_delay_steps_once_for_many_wakes() -> None:
    steps: list[int] = []
    stepped = threading.Event()

    def step() -> bool:
        steps.append(1)
        stepped.set()
        return False

    worker = BackgroundWorker(step, "test", delay_s=0.05)
    for _ in range(5):
        worker.wake()
    assert stepped.wait(10)
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
