"""Bands: which covered messages `hybrid` still sends, by their priority, each band within its share."""

from collections.abc import Sequence

from recto.window.measure import Group
from recto.window.plan import Band, Lift

# Of the message budget at low water. Memory and recall come with each message: their floor is in what low water leaves
# free. The latest messages may take what is meant for important, normal and spare, never what critical ones need.
CRITICAL, IMPORTANT, NORMAL = 0.30, 0.25, 0.20
MEMORY, SPARE = 0.20, 0.05
LATEST = IMPORTANT + NORMAL + SPARE
BANDS = (("critical", 8, CRITICAL), ("important", 6, IMPORTANT), ("normal", 3, NORMAL), ("low", 1, 0.0))


def lift(candidates: Sequence[Group], messages: int, room: int) -> tuple[list[Lift], tuple[Band, ...]]:
    """Lifts in order of time. `messages` is the whole message budget, `room` what of it is not yet taken.

    In a band the most important come first, then the newest. What a band leaves unused flows to the next one; those of
    low priority get only that.
    """
    left = max(0, room - int(messages * SPARE))
    carried = 0
    chosen: dict[int, Lift] = {}
    report = []
    for name, least, part in BANDS:
        share = min(left, int(messages * part) + carried) if name != "low" else left
        used = 0
        for place in _of_band(candidates, least):
            group = candidates[place]
            if place not in chosen and left and used + group.tokens <= share:
                used += group.tokens
                chosen[place] = Lift(group.ids, group.tokens, f"priority {group.priority} ({name})")
        carried, left = share - used, left - used
        report.append(Band(name, share, used))
    report.append(Band("memory", int(messages * MEMORY), 0))
    return [chosen[place] for place in sorted(chosen)], tuple(report)


def _of_band(candidates: Sequence[Group], least: int) -> list[int]:
    most = {8: 10, 6: 7, 3: 5, 1: 2}[least]
    places = [place for place, group in enumerate(candidates) if least <= group.priority <= most]
    return sorted(places, key=lambda place: (-candidates[place].priority, -place))
