"""Background work happens in one thread, however often it is woken."""

import threading

from recto.concurrency import BackgroundWorker


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
