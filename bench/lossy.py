"""A summariser that is easy on itself: it keeps some sentences, drops the rest, and makes things up. Pure, by seed.

Used on both sides, so it knows neither recto nor any peer.
"""

import re
from dataclasses import dataclass, field
from random import Random

from bench.wire import tokens

# What it makes up: nothing of it is ever said in a chat of bench/planted.py or in a recorded run.
INVENTED = (
    "{name} has joined the project.",
    "The total came to {money}.",
    "The review was moved to {date}.",
    "The fix is in {path}.",
    "It is tracked as {ticket}.",
    "Throughput rose by {percent}.",
    "They run `{command}` every night.",
    "The service answers at {url}.",
    'The user called it "{quote}".',
    "It needs version {version} at least.",
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MARK = re.compile(r" ?\[unverified\]")
_FRAMED = re.compile(r"^\[.*\]$|^#\d+ ")
_WORDS = ("zephyr", "quasar", "obelisk", "marzipan", "tundra", "kestrel", "gazebo", "pylon", "vellum", "sextant")


@dataclass(slots=True)
class Lossy:
    """Writes the summaries of one conversation, one after the other."""

    seed: int
    keeps: float = 0.3
    inventions: int = 3
    invented: list[str] = field(default_factory=list)
    """Every value that it made up."""

    def write(self, read: list[str], room: int) -> str:
        """Some of the sentences that it reads, in order, as many as the room holds; and what it makes up."""
        random = Random(f"lossy {self.seed} {len(self.invented)}")
        made_up = [self._made_up(random) for _ in range(self.inventions)]
        room -= sum(tokens(each) + 1 for each in made_up)
        found = [each for text in read for each in _SENTENCE.split(_MARK.sub("", text))]
        found = [each.strip() for each in found if 12 < len(each) < 300 and not _FRAMED.match(each)]
        kept = {at for at in range(len(found)) if random.random() < self.keeps}
        while kept and sum(tokens(found[at]) + 1 for at in kept) > room:
            kept -= set(random.sample(sorted(kept), max(1, len(kept) // 10)))
        said = [found[at] for at in sorted(kept)]
        for each in made_up:
            said.insert(random.randint(0, len(said)), each)
        return "\n".join(said)

    def _made_up(self, random: Random) -> str:
        pattern = random.choice(INVENTED)
        (name,) = re.findall(r"\{(\w+)\}", pattern)
        one, other = random.sample(_WORDS, 2)
        number = random.randint(1, 9)
        value = {
            "name": f"{one.capitalize()}a {other.capitalize()}by",
            "money": f"${random.randint(1, 9)}{number},{random.randint(101, 989)}.37",
            "date": f"20{random.randint(31, 69)}-{number:02}-2{random.randint(1, 8)}",
            "path": f"lib/{one}/{other}_{number}.rs",
            "ticket": f"{one[:4].upper()}-{random.randint(70_001, 79_999)}",
            "percent": f"{random.randint(11, 88)}.{number}3 %",
            "command": f"cargo {one} --{other}",
            "url": f"https://{one}.{other}.test/v{number}",
            "quote": f"a {one} for every {other}",
            "version": f"{number}{number}.{random.randint(70, 99)}.{random.randint(70, 99)}",
        }[name]
        self.invented.append(value)
        return pattern.replace("{" + name + "}", value)


def unmarked(text: str, invented: list[str]) -> list[str]:
    """Those of the inventions in a text whose first mention has no mark behind it."""
    found = []
    for value in dict.fromkeys(invented):
        at = text.find(value)
        if at >= 0 and not re.match(r"[`\"'.)]*\s?\[unverified\]", text[at + len(value) :]):
            found.append(value)
    return found
