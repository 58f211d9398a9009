"""What is told of the requests of long runs."""

from bench.cache import figures, render
from bench.replay import Made
from bench.wire import Wire

ASKED: Wire = {"role": "user", "content": "word " * 300}
SUMMARY: Wire = {"role": "user", "content": "in short"}


def size(*messages: Wire) -> int:
    return sum(len(render(message)) for message in messages)


def test_requests_for_summaries_are_billed_and_counted_apart() -> None:
    found = figures([[Made("reply", [ASKED]), Made("summary", [ASKED]), Made("reply", [SUMMARY], 1)]], 1_000)
    assert (found.requests, found.summaries) == (2, 1)
    assert found.bill.input == 2 * size(ASKED) + size(SUMMARY)
    assert found.bill.read == size(ASKED) // 128 * 128


def test_what_is_kept_is_the_mean_of_the_requests_right_after_a_compaction() -> None:
    first = [Made("reply", [ASKED]), Made("reply", [SUMMARY], 1), Made("reply", [SUMMARY, ASKED], 1)]
    second = [Made("reply", [ASKED]), Made("reply", [SUMMARY, ASKED], 1)]
    assert figures([first, second], 1_000).kept == (size(SUMMARY) + size(SUMMARY, ASKED)) / 2


def test_runs_do_not_share_their_cache() -> None:
    assert figures([[Made("reply", [ASKED])], [Made("reply", [ASKED])]], 1_000).bill.read == 0


def test_requests_over_the_window_are_counted() -> None:
    assert figures([[Made("reply", [ASKED]), Made("reply", [SUMMARY])]], 100).over == 1
