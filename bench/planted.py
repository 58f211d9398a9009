"""Chats with facts planted in them: a user, an assistant, tools; scenes with facts among others without. Pure, by seed.

A scene is a few turns: "U", "A" or "T", what is said, and behind "=>" the facts in it. "~" is time that passes before
the rest of a scene; "x was y" is a fact that took the place of another.
"""

import re
from dataclasses import dataclass, field
from random import Random

ROLES = {"U": "user", "A": "assistant", "T": "tool"}

SCENES = """
U Please keep everything under {money}, that is the most the board has approved. => {money}
A Fine. I will split it between rooms, food and printing, and leave a little for surprises.

A Who is going to look after the speakers?
U {person}. => {person}
A Good, then I know whom to write to.

U We decided to hold it in {town} rather than in the capital. => {town}
A A good choice. It is easier to reach by train and the rooms cost less there.

U The opening is on {date}.
A Then the invitations should leave six weeks before.
~
U Actually the opening has moved to {date2}, because the hall was taken. => {date2} was {date}
A I have changed the plan, and the invitations move with it.

U How large may attachments be on our mail server?
A At most {count} MB for one message. Larger ones are refused with an error that says so. => {count} MB

A Let me look at the configuration.
T # generated, do not edit\\nworker_processes auto;\\nserver {\\n    listen {port};\\n    server_name {host};\\n}
A The server listens on port {port}, and its only name is {host}. => {port}; {host}

U The tests fail on my machine, and nowhere else.
T ==== test session starts ====\\ncollected 48 items\\n....F...\\nFAILED {path}::test_clock - AssertionError\\n1 failed
A I have found the cause: {path} asks for the time twice and expects the same answer. => {path}

U From now on please give all amounts in {currency}. => {currency}
A Of course.

U By the way, I'm allergic to {food}, so nothing with that on the menu. => {food}
A I will tell the kitchen, and I will put it into the notes for the hotel as well.

A Which version of the library is installed at your place?
U {version} => {version}
A That is recent enough for what we need.

A It is reported now, the ticket is {ticket}. => {ticket}
U Thanks!

A To build it again from scratch, run this:\\n```\\n{command}\\n```\\nIt takes a few minutes. => {command}
U That worked.

U My colleague {person} knows the old system best, ask her before you change {path}. => {person}; {path}
A I will. Until then I leave that file as it is.

A The upload took {count} seconds, which is {percent} slower than last week. => {count} seconds; {percent}
U Strange. Nothing has changed on our side.

U The invoice {ticket} has not been paid yet. It is about {money}. => {ticket}; {money}
A Shall I write a reminder?
U Not yet.

U Let's look for hotels in {town}.
A There are several near the station, most of them small.
U No, not {town}. I meant {town2}. => {town2} was {town}
A My mistake, I will look there.

U Here is what the machine wrote last night:\\n{log}\\nWhat happened?
A It could not reach {host} from {time} on, and gave up after three attempts. => {host}; {time}

A What should the new folder be called?
U {slug} => {slug}

A The contract ends on {date} and has to be cancelled in writing. => {date}
U Good to know. I would have missed that.

U Why is this so slow?\\n```python\\n{listing}\\n```
A The inner loop runs {count} times for every row, because nothing is kept between the rows. => {count} times
U Can you mend it?
A Yes, I have moved the lookup out of the loop. It is in {path2}. => {path2}

U The deadline is {date}.
A That leaves enough time.
~
U I have to correct myself, the deadline is {date2}. => {date2} was {date}
A Then we should begin a little earlier.

U Whatever we choose, it must run without a network. That is not negotiable, says {person}. => {person}
A Then everything has to be installed beforehand, fonts and pictures as well.

U We will use {tool} for the drawings. => {tool}
A It reads the old files too, so nothing has to be drawn again.
"""

ASIDES = """
U What do you think about the colours?
A Warm ones look friendlier on a poster, cold ones are easier to read from far away. Whatever you take, keep the \
contrast high. Many people see reds and greens alike, so do not tell things apart by those alone.

U Could you explain how such a cache works?
A A cache keeps what was expensive to make, so that it need not be made again. The hard part is to know when a \
thing is out of date. Some caches ask the origin each time, others trust an age. Most mistakes come from forgetting \
that two people may look at the same time.

U ok
A Great!

U Haha, that is how it always goes.
A It does, does it not?

U Thanks, that helps a lot.
A You're welcome! Let me know if there is anything else.

U Is it worth writing things down at all?
A I think so. What is written down can be read by somebody who was not there, and it can be wrong in a way that \
others see. Talking is quicker, but it leaves nothing behind. A page that nobody keeps up is worse than none, \
though.

U Hmm, let me think about it.
A Take your time.

U I walked along the river this morning, it was lovely.
A That sounds like a good beginning of the day!

U What makes a talk a good one?
A One idea, told by somebody who cares about it. Slides help where they show what words cannot. People forgive \
almost everything but being bored, and they are bored when they cannot see where it leads. A story at the start is \
seldom wrong.

U How do others do this?
A Quite differently. Small groups tend to agree over coffee and write it down later, large ones need a paper before \
they can meet. Both get stuck when nobody knows who has the last word. It helps to say that first.

T total\\ndrwxr-xr-x  docs\\ndrwxr-xr-x  images\\n-rw-r--r--  notes.txt\\n-rw-r--r--  readme.md

A Should I go on with the next part?
U Yes please.
A All right.

U Do you like tea?
A I cannot taste it, but I like how people speak about it.

U Would you do it yourself or pay somebody?
A I would do the parts that one learns from, and pay for those that must be right at the first try. A friend who \
has done it before is often better than either. In any case, have somebody else look at it before it is public.

U I am not sure that everybody will agree.
A They need not. It is enough when nobody has a reason to be against it, and when those who do the work are heard \
first. Ask them one by one, since in a meeting people answer each other and not the question.

U What would you leave out?
A Everything that is there because it has always been there. Begin with what nobody asked about in the past years. \
If you miss it afterwards, it is easy to put back, and you will know why it was good.

U How long does such a thing last?
A Longer than one thinks, if it is kept dry and nobody drills into it. The weak point is where two materials meet. \
They move differently with the weather, and the joint has to give way.

A Here is the folder as it is now.
T {files}
U Looks fine to me.

U Please have a look at the machine.
T {status}
A Nothing unusual, it is idle most of the time.

A I will read the file first.
T {source}
A It does what its name says.

U Does the order matter?
A A little. What comes first is read by everybody, what comes last is remembered best, and the middle is where one \
hides what has to be said but does not help. If in doubt, put the thing people came for at the top.
"""
TASKS = (
    "I want to organise a small conference for translators, and I need your help with the plan and the machines.",
    "Hello! Please help me to set up a web site for our village archive, with all that has to be arranged for it.",
    "Hi there. We are moving our workshop to another building, and I would like you to keep track of what is to do.",
)


def _words(table: str, between: str | None = None) -> list[str]:
    return table.split(between)


FIRST = _words("Marta Ilse Tomas Aisha Yuki Pavel Nadia Bruno Leila Oskar Ingrid Samir Vera Kofi Elena Hugo")
LAST = _words("Okafor Lindqvist Moreau Takeda Brandt Novak Castillo Haddad Pereira Vogel Iversen Rossi Dumont Kaya")
TOWNS = _words("Ghent Lübeck Turku Coimbra Girona Maribor Olomouc Aarhus Trieste Galway Utrecht Bergen Plovdiv Graz")
MONTHS = _words("January February March April May June July August September October November December")
WORDS = _words(
    "harbour lantern archive meadow copper willow granite orchard falcon ribbon cobalt saddle thistle beacon"
)
FOODS = _words("peanuts shellfish celery mustard sesame lupins hazelnuts buckwheat")
CURRENCIES = _words("Swiss francs,Danish kroner,Polish zloty,Czech koruna,Norwegian kroner,Japanese yen", ",")
TOOLS = _words("Inkscape Krita FreeCAD Blender Scribus LibreCAD QGIS")
LISTING = "for row in rows:\n    for key in keys:\n        table = load(row)\n        out.append(table[key])"
PLACE = re.compile(r"\{([a-z]+\d?)\}")


@dataclass(frozen=True, slots=True)
class Fact:
    value: str
    was: str = ""
    """What it was before it was corrected."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    text: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    turns: tuple[Turn, ...]

    @property
    def facts(self) -> list[Fact]:
        return [fact for turn in self.turns for fact in turn.facts]

    @property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.turns)


def is_told(value: str, text: str) -> bool:
    """Whether the text has it as it was written, and not as a part of something longer."""
    return re.search(rf"(?<![\w.,/-]){re.escape(value)}(?![\w/]|[.,-]\d)", text, re.IGNORECASE) is not None


def chat(number: int, characters: int) -> Chat:
    """The chat of a number, about so long, its scenes all over it: always the same."""
    return Author(number).chat(characters)


@dataclass(slots=True)
class Author:
    number: int
    _random: Random = field(init=False)
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = Random(f"planted {self.number}")

    def chat(self, characters: int) -> Chat:
        turns = [Turn("user", self._random.choice(TASKS)), Turn("assistant", "Gladly!")]
        later: list[tuple[int, list[Turn]]] = []
        size, scenes, asides = 0, self._shuffled(SCENES), self._shuffled(ASIDES)
        wanted = len(scenes) + 1
        while size < characters or later:
            if later and (len(turns) >= later[0][0] or size >= characters):
                added = later.pop(0)[1]
            elif scenes and size >= characters * (1 - len(scenes) / wanted):
                added, *rest = self._scene(scenes.pop())
                later += [(len(turns) + self._random.randint(6, 16), part) for part in rest]
            else:
                asides = asides or self._shuffled(ASIDES)
                added = self._scene(asides.pop())[0]
            turns += added
            size += sum(len(turn.text) for turn in added)
        return Chat(tuple(turns))

    def _shuffled(self, written: str) -> list[str]:
        deck = written.strip().split("\n\n")
        self._random.shuffle(deck)
        return deck

    def _scene(self, written: str) -> list[list[Turn]]:
        values: dict[str, str] = {}
        parts: list[list[Turn]] = [[]]
        for line in written.splitlines():
            if line == "~":
                parts.append([])
            else:
                parts[-1].append(self._turn(PLACE.sub(lambda found: self._value(found[1], values), line)))
        return parts

    def _turn(self, line: str) -> Turn:
        text, _, told = line[2:].partition(" => ")
        facts = [Fact(*fact.split(" was ")) for fact in told.split("; ") if fact]
        return Turn(ROLES[line[0]], text.replace("\\n", "\n"), tuple(facts))

    def _value(self, name: str, values: dict[str, str]) -> str:
        """One for each name of a scene, and none twice in a chat as long as there are others."""
        for _ in range(20):
            if name in values:
                break
            made = self._made(name.rstrip("2"))
            if made not in self._used:
                values[name] = made
        values.setdefault(name, self._made(name.rstrip("2")))
        self._used.add(values[name])
        return values[name].replace("\n", "\\n")

    def _made(self, name: str) -> str:
        choose, number = self._random.choice, self._random.randint
        one, other = self._random.sample(WORDS, 2)
        made = {
            "money": f"{number(21, 98) * 150:,} euros",
            "person": f"{choose(FIRST)} {choose(LAST)}",
            "town": choose(TOWNS),
            "date": f"{number(1, 28)} {choose(MONTHS)}",
            "count": str(number(101, 989)),
            "port": str(number(3100, 9900)),
            "host": f"{one}-{number(2, 40)}.example.org",
            "path": f"src/{one}/{other}.py",
            "currency": choose(CURRENCIES),
            "food": choose(FOODS),
            "version": f"{number(2, 9)}.{number(0, 20)}.{number(1, 30)}",
            "ticket": f"{one[:3].upper()}-{number(1000, 9999)}",
            "command": f"make {one}-{other}",
            "percent": f"{number(11, 79)} %",
            "time": f"{number(0, 23):02}:{number(0, 59):02}:{number(0, 59):02}",
            "slug": f"{one}-and-{other}",
            "tool": choose(TOOLS),
            "listing": LISTING,
        }
        return made[name] if name in made else self._machine_made(name)

    def _machine_made(self, name: str) -> str:
        """What fills windows: nothing in it is a planted fact."""
        lines = [self._random.randint(12, 99_000) for _ in range(self._random.randint(12, 40))]
        match name:
            case "log":
                made = [f"02:{at:02}:11 INFO job {line} done" for at, line in enumerate(lines)]
                return "\n".join([*made, "02:58:41 ERROR connection refused, giving up"])
            case "files":
                return "\n".join(f"-rw-r--r-- 1 web web {line} {self._random.choice(WORDS)}.txt" for line in lines)
            case "status":
                return "\n".join(
                    f"{line} root 20 0 {line % 97}.0m S 0.{at % 10} kworker" for at, line in enumerate(lines)
                )
            case _:
                names = [self._random.choice(WORDS) for _ in lines]
                return "\n".join(f"    {name}.set({line}, keep=True)" for name, line in zip(names, lines, strict=True))
