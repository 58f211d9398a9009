"""A vault to measure with, the same in every run: notes in folders, with properties, tags, other names and links.

Knows what each of its links means, so that whoever resolves them can be checked.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from urllib.parse import quote

from bench.corpus import Speaker

# Bytes: half of the notes are shorter than the median, and each tenth one longer than three times of it.
MEDIAN, SPREAD, SHORTEST, LONGEST = 1_800, 0.9, 300, 20_000
LINKS = 5
BROKEN = 0.03
FORMS = {"plain": 45, "captioned": 20, "path": 10, "heading": 8, "markdown": 8, "alias": 5, "image": 4}
NAMESAKES = 0.05
NAMES = 100_000
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class Meant:
    """A link as it is written in a note, and the file that it means; None when it is broken."""

    source: str
    written: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Notes:
    root: Path
    paths: tuple[str, ...]
    links: tuple[Meant, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a note is called before any is written: others link to it."""

    path: str
    name: str
    is_alone: bool
    """Nobody else bears its name."""
    alias: str = ""
    headings: tuple[str, ...] = field(default_factory=tuple)


def write_notes(root: Path, count: int, seed: int = 1) -> Notes:
    """So many notes, and an image for every fifty of them."""
    random, speaker = Random(seed), Speaker(seed)
    plans = _planned(count, random, speaker)
    images = [f"images/{uncommon(number)} {number}.png" for number in range(1, 1 + count // 50)]
    meant, size = list[Meant](), 0
    for image in images:
        _write(root / image, random.randbytes(200))
    for plan in plans:
        links = [_link(plan, plans, images, random) for _ in range(random.randint(0, 2 * LINKS))]
        text = _text(plan, [link.written for link in links], random, speaker).encode()
        _write(root / plan.path, text)
        meant += links
        size += len(text)
    return Notes(root, tuple(plan.path for plan in plans), tuple(meant), size)


def uncommon(number: int) -> str:
    """One of many words that hardly anybody says: a manual has only some 3,000."""
    # 7919 shares no divisor with 100 ** 3: all of them differ, and neighbours do not look alike
    scattered = number * 7919 % 100**3
    return _SYLLABLES[scattered // 10_000] + _SYLLABLES[scattered // 100 % 100] + _SYLLABLES[scattered % 100]


def rarely(random: Random) -> str:
    """The nth of them a nth as often as the first."""
    return uncommon(int(NAMES ** random.random()))


# -- what notes are called


def _planned(count: int, random: Random, speaker: Speaker) -> list[_Plan]:
    folders = _folders(max(1, count // 40), random)
    names, plans = dict[str, list[str]](), list[_Plan]()
    for number in range(count):
        folder = random.choice(folders)
        name = random.choice(list(names.values())[-50:])[0] if names and random.random() < NAMESAKES else ""
        if not name or any(posixpath.dirname(path) == folder for path in names[name.lower()][1:]):
            name = _fresh(names, random, speaker, number)
        names.setdefault(name.lower(), [name]).append(path := posixpath.join(folder, f"{name}.md"))
        alias = f"{uncommon(NAMES + number)} {number}".title() if random.random() < 0.2 else ""
        headings = tuple(_title(speaker, random) for _ in range(random.randint(1, 6)))
        plans.append(_Plan(path, name, True, alias, headings))
    shared = {path for paths in names.values() if len(paths) > 2 for path in paths}
    return [
        plan if plan.path not in shared else _Plan(plan.path, plan.name, False, plan.alias, plan.headings)
        for plan in plans
    ]


def _folders(count: int, random: Random) -> list[str]:
    """Up to four deep; some notes lie in none."""
    folders = [""]
    for number in range(count):
        above = random.choice([folder for folder in folders if folder.count("/") < 3])
        folders.append(posixpath.join(above, uncommon(2 * NAMES + number).capitalize()))
    return folders


def _fresh(names: dict[str, list[str]], random: Random, speaker: Speaker, number: int) -> str:
    name = _title(speaker, random)
    return name if name.lower() not in names else f"{name} {uncommon(3 * NAMES + number)}"


def _title(speaker: Speaker, random: Random) -> str:
    said = speaker.text(6 * random.randint(2, 4)).rstrip(".?!")
    return said if random.random() < 0.7 else f"{said} {rarely(random)}"


# -- what they link to


def _link(plan: _Plan, plans: Sequence[_Plan], images: Sequence[str], random: Random) -> Meant:
    target = plans[int(len(plans) ** random.random()) - 1]
    if random.random() < BROKEN:
        return Meant(plan.path, f"[[{_misspelt(target.name, random)}]]", None)
    form = random.choices(list(FORMS), list(FORMS.values()))[0]
    if form == "image" and images:
        image = random.choice(images)
        return Meant(plan.path, f"![[{posixpath.basename(image)}]]", image)
    return Meant(plan.path, _written(form, plan, target), target.path)


def _written(form: str, plan: _Plan, target: _Plan) -> str:
    # a name that two bear means the nearer one: who means the other writes its path
    name = target.name if target.is_alone else target.path.removesuffix(".md")
    if form == "markdown":
        beside = posixpath.relpath(target.path, posixpath.dirname(plan.path) or ".")
        return f"[{target.name}]({quote(beside)})"
    inside = {
        "captioned": f"{name}|that note",
        "path": target.path.removesuffix(".md"),
        "heading": f"{name}#{target.headings[0]}",
        "alias": target.alias or name,
    }
    return f"[[{inside.get(form, name)}]]"


def _misspelt(name: str, random: Random) -> str:
    """A letter too few and a word too many: near to a name, and none."""
    at = random.randrange(len(name))
    return f"{name[:at]}{name[at + 1 :]} {uncommon(4 * NAMES + random.randrange(NAMES))}"


# -- what they say


def _text(plan: _Plan, links: Sequence[str], random: Random, speaker: Speaker) -> str:
    size = min(LONGEST, max(SHORTEST, round(MEDIAN * random.lognormvariate(0, SPREAD))))
    paragraphs = list(_paragraphs(size, random, speaker))
    for link in links:
        at = random.randrange(len(paragraphs))
        # behind a fence, not in its line: that would no longer close it
        between = "\n\n" if paragraphs[at].endswith("```") else " "
        paragraphs[at] = f"{paragraphs[at]}{between}See {link} for more."
    cuts = sorted(random.randint(0, len(paragraphs)) for _ in plan.headings)
    parts = ["\n\n".join(paragraphs[begin:end]) for begin, end in pairwise([*cuts, len(paragraphs)])]
    sections = [f"## {heading}\n\n{part}\n" for heading, part in zip(plan.headings, parts, strict=True)]
    above = "\n\n".join(paragraphs[: cuts[0]])
    return "\n".join([f"{_properties(plan, random, speaker)}# {plan.name}\n", f"{above}\n", *sections])


def _paragraphs(size: int, random: Random, speaker: Speaker) -> Iterator[str]:
    left = size
    while left > 0:
        length = min(left, random.randint(150, 700))
        left -= length
        text = f"{speaker.text(length)} It is the {rarely(random)} of {rarely(random)}."
        kind = random.random()
        if kind < 0.1:
            yield f"```\n{text}\n```"
        elif kind < 0.25:
            yield "\n".join(f"- {sentence}" for sentence in text.split(". "))
        else:
            yield text


def _properties(plan: _Plan, random: Random, speaker: Speaker) -> str:
    if not plan.alias and random.random() < 0.4:
        return ""
    tags = ", ".join(rarely(random) for _ in range(random.randint(0, 4)))
    day = f"20{random.randint(15, 25)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    lines = [f"date: {day}", f"tags: [{tags}]", f"status: {random.choice(('draft', 'growing', 'done'))}"]
    lines += [f"aliases: [{plan.alias}]"] if plan.alias else []
    lines += [f"description: {_title(speaker, random)}"] if random.random() < 0.1 else []
    return "\n".join(["---", *lines, "---", "", ""])


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
