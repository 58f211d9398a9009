"""Metrics: counters and durations in the text format of Prometheus. Counts in this process and its workers."""

from collections import Counter
from collections.abc import Iterator

import msgspec

BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    def __init__(self) -> None:
        self.counts = [0] * len(BUCKETS_S)
        self.total, self.seconds = 0, 0.0

    def add(self, seconds: float) -> None:
        self.total += 1
        self.seconds += seconds
        for place, bound in enumerate(BUCKETS_S):
            self.counts[place] += seconds <= bound

    def join(self, counts: list[int], total: int, seconds: float) -> None:
        self.counts = [one + other for one, other in zip(self.counts, counts, strict=True)]
        self.total, self.seconds = self.total + total, self.seconds + seconds

    def lines(self, name: str) -> Iterator[str]:
        for bound, count in zip(BUCKETS_S, self.counts, strict=True):
            yield f'{name}_bucket{{le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self.total}'
        yield f"{name}_sum {self.seconds:.6f}"
        yield f"{name}_count {self.total}"


class Metrics:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By route, mode and status."""
        self.tokens: Counter[str] = Counter()
        self.compactions = 0
        self.first_byte, self.whole = Histogram(), Histogram()

    def taken(self) -> bytes:
        """All figures, which begin from zero again; for `add` in another process."""
        requests = [(*key, count) for key, count in self.requests.items()]
        durations = [(each.counts, each.total, each.seconds) for each in (self.first_byte, self.whole)]
        taken = msgspec.json.encode((requests, self.tokens, self.compactions, durations))
        self.__init__()  # type: ignore[misc]
        return taken

    def add(self, taken: bytes) -> None:
        requests, tokens, compactions, durations = msgspec.json.decode(taken)
        for route, mode, status, count in requests:
            self.requests[route, mode, status] += count
        self.tokens.update(tokens)
        self.compactions += compactions
        for own, other in zip((self.first_byte, self.whole), durations, strict=True):
            own.join(*other)

    def text(self, running: int) -> str:
        return "\n".join((*self._lines(running), ""))

    def _lines(self, running: int) -> Iterator[str]:
        yield from _about("recto_requests_total", "counter", "Requests by route, mode and status.")
        for (route, mode, status), count in sorted(self.requests.items()):
            yield f'recto_requests_total{{route="{route}",mode="{mode}",status="{status}"}} {count}'
        yield from _about("recto_tokens_total", "counter", "Tokens that providers reported.")
        for kind, count in sorted(self.tokens.items()):
            yield f'recto_tokens_total{{kind="{kind}"}} {count}'
        yield from _about("recto_compactions_total", "counter", "Compactions that requests needed.")
        yield f"recto_compactions_total {self.compactions}"
        yield from _about("recto_replies_running", "gauge", "Replies that are on their way.")
        yield f"recto_replies_running {running}"
        yield from _about("recto_first_byte_seconds", "histogram", "Time to the first byte of a reply.")
        yield from self.first_byte.lines("recto_first_byte_seconds")
        yield from _about("recto_reply_seconds", "histogram", "Time to the end of a reply.")
        yield from self.whole.lines("recto_reply_seconds")


def _about(name: str, kind: str, said: str) -> tuple[str, str]:
    return f"# HELP {name} {said}", f"# TYPE {name} {kind}"
