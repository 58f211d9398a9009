"""TokenCalibration: the factor for our estimates for one model, learned from reported usage.

Pure: reports in, a value out. Exact counts are never scaled, and counts are cached unscaled.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from recto.chat.message import Usage

LEAST, MOST = 0.5, 2.0
"""A report outside this range measures something else: several calls, uncached tokens alone, web searches."""
LEAST_STEADY, MOST_STEADY = 0.25, 4.0
"""The range for reports that agree with each other: a tokenizer may differ that much from ours."""
# One report among three is outvoted. Until there are three, the factor stays near 1.
ENOUGH = 3
NEAR = 0.15
NEAR_AT_FIRST = 0.33
MOST_OWN = 5
# Other conversations have other topics and languages: many of them are needed.
MOST_OTHERS = 15
OF_ERROR = 20
LARGEST_REPORT = 100_000_000
"""No window is larger; a higher report is not a token count."""


class UsageReport(Struct, frozen=True):
    """Our count of one request, and the input that the provider reported."""

    conversation: str
    exact: int
    estimated: int
    """Tokens that were estimated, before any calibration."""
    counted: int
    """The whole request as we counted it then, calibrated."""
    reported: int
    meter: str = ""

    @property
    def ratio(self) -> float:
        """The provider's count relative to our estimate."""
        return (self.reported - self.exact) / self.estimated if self.estimated else 1.0

    @property
    def error(self) -> float:
        return abs(self.counted - self.reported) / self.reported


class TokenCalibration(Struct, frozen=True):
    factor: float = 1.0
    replies: int = 0
    """The number of replies it is learned from."""
    error: float | None = None
    """The mean error of the latest counts against their reports; None before the first reply."""
    left_out: int = 0
    """Reports that are not learned from for any reason."""

    def to_json(self) -> dict[str, Any]:
        return {
            "factor": self.factor,
            "replies": self.replies,
            "error": None if self.error is None else round(self.error, 4),
            "left_out": self.left_out,
        }


UNCALIBRATED = TokenCalibration()


def learned(reports: Sequence[UsageReport], conversation: str = "") -> TokenCalibration:
    """Learns from the reports about one model, newest first. A conversation's own reports weigh most: its next request
    repeats most of the last one."""
    estimated = [report for report in reports if report.estimated]
    least, most = _believed_range([report.ratio for report in estimated])
    used = [report for report in estimated if least <= report.ratio <= most]
    own = [report.ratio for report in used if report.conversation == conversation]
    openings = {report.conversation: report.ratio for report in used}  # the oldest of each, which is written last
    return TokenCalibration(
        round(_factor(own, [report.ratio for report in used], list(openings.values())), 4),
        len(used),
        _mean([report.error for report in used[:OF_ERROR]]) if used else None,
        left_out=len(estimated) - len(used),
    )


def _believed_range(ratios: Sequence[float]) -> tuple[float, float]:
    """The range around the agreement of three of the latest four reports, if it is far from our estimates; a single
    report changes nothing."""
    for start in range(len(ratios) - ENOUGH + 1):
        run = ratios[start : start + ENOUGH + 1]
        middle = _median(run)
        agreeing = [ratio for ratio in run if abs(ratio - middle) <= NEAR * middle]
        if len(agreeing) < ENOUGH or min(agreeing) < LEAST_STEADY or max(agreeing) > MOST_STEADY:
            continue
        if LEAST <= middle <= MOST:
            break
        return max(middle * LEAST, LEAST_STEADY), min(middle * MOST, MOST_STEADY)
    return LEAST, MOST


def _factor(own: Sequence[float], all: Sequence[float], openings: Sequence[float]) -> float:
    if len(own) >= ENOUGH:
        middle = _median(own[:MOST_OWN])
        return next((ratio for ratio in own[:MOST_OWN] if abs(ratio / middle - 1) <= NEAR), middle)
    middle = _median(all[:MOST_OTHERS]) if len(all) >= ENOUGH else 1.0
    # a new conversation is most like the beginnings of others: mostly instructions and tools
    latest = own[0] if own else _median(openings[:MOST_OTHERS]) if openings else middle
    return min(max(latest, middle / (1 + NEAR_AT_FIRST)), middle * (1 + NEAR_AT_FIRST))


# The standard library's statistics take several milliseconds to import.
def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _median(values: Sequence[float]) -> float:
    return _mean(sorted(values)[(len(values) - 1) // 2 : len(values) // 2 + 1])


def is_believable(usage: Usage) -> bool:
    """True if these can be token counts: whole, not negative, some input, and not larger than any window."""
    values = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    return all(type(value) is int and 0 <= value <= LARGEST_REPORT for value in values) and usage.input > 0
