"""Facts and other messages of a user, made up: what is told, what changes later, what is asked, and what is chatter."""

import random
from dataclasses import dataclass

FACTS, CHANGED = 200, 60
NAMES = ("Anna", "Bruno", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Katya", "Luis", "Mira")
SURNAMES = ("Okafor", "Lindqvist", "Moreau", "Tanaka", "Petrov", "Silva", "Weber", "Haddad", "Novak", "Rossi")
TOWNS = (
    "Lisbon",
    "Tromsø",
    "Graz",
    "Valencia",
    "Leeds",
    "Tallinn",
    "Porto",
    "Ghent",
    "Bergen",
    "Turin",
    "Cádiz",
    "Kiel",
)
JOBS = ("a nurse", "an architect", "a beekeeper", "a pilot", "a translator", "a plumber", "a judge", "a baker")
THINGS = ("kitchen", "boat", "garden shed", "bicycle", "greenhouse", "piano", "camper van", "cellar")
TOOLS = ("Postgres", "Redis", "Terraform", "Ansible", "Grafana", "Kafka", "Nomad", "ClickHouse")
FOODS = ("peanuts", "shellfish", "celery", "sesame", "lupins", "mustard", "walnuts", "kiwi")
JOBS_DE = ("Krankenpfleger", "Architektin", "Imker", "Pilotin", "Übersetzer", "Klempner", "Richterin", "Bäcker")
JOBS_ES = ("enfermera", "arquitecto", "apicultora", "piloto", "traductora", "fontanero", "jueza", "panadero")

# How a fact is told, how a change is told, and a message that needs it. {s} is whom or what it is about, {v} the value.
TEMPLATES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("en", "My friend {s} works as {v}.", "{s} changed jobs and is {v} now.", "What does {s} do for a living?", JOBS),
    ("en", "{s} lives in {v}.", "{s} moved to {v}.", "I want to visit {s}; which town do I travel to?", TOWNS),
    (
        "en",
        "{s} is allergic to {v}.",
        "Correction: {s} is allergic to {v}, the doctor says.",
        "What must I not cook for {s}?",
        FOODS,
    ),
    (
        "en",
        "We decided to use {v} for the {s} service.",
        "The {s} service runs on {v} now.",
        "Which technology is behind the {s} service?",
        TOOLS,
    ),
    (
        "en",
        "The budget for the {s} is {v} euros.",
        "The budget for the {s} is now {v} euros.",
        "How much may I spend on the {s}?",
        ("1,250", "3,400", "780", "9,900", "2,075", "615"),
    ),
    ("de", "{s} arbeitet als {v}.", "{s} arbeitet jetzt als {v}.", "Was macht {s} beruflich?", JOBS_DE),
    ("de", "{s} wohnt in {v}.", "{s} ist nach {v} umgezogen.", "Wo wohnt {s} eigentlich?", TOWNS),
    ("es", "{s} trabaja de {v}.", "{s} ahora trabaja de {v}.", "¿En qué trabaja {s}?", JOBS_ES),
    ("es", "{s} vive en {v}.", "{s} se ha mudado a {v}.", "¿Dónde vive {s}?", TOWNS),
)


# What people also write: none of it is worth remembering.
CHATTER = (
    "Thanks, that helps a lot!",
    "Can you make the second paragraph shorter?",
    "Fix the bug where our server is slow after the {n}th request.",
    "I think my approach is fine, but the tests still fail.",
    "My code is broken again and the log says error {n}.",
    "Translate: my brother is a pilot and lives in Porto.",
    "Write a story in which I am a nurse who lives in Leeds.",
    "If my boss is in Turin on day {n}, should I go too?",
    "I am going to the shop now, back in {n} minutes.",
    "I'm a bit tired today.",
    "He said that his team is moving to building {n}.",
    "What is the budget for version {n}?",
    "I love it, especially part {n}.",
    "ok, next one please",
    "Ich glaube, das war Aufgabe {n}.",
    "Kannst du mir erklären, wie Schritt {n} funktioniert?",
    "Wenn mein Chef in Graz wäre, würde ich fahren.",
    "Schreib einen Brief an meine Schwester, die in Kiel wohnt.",
    "Heute arbeite ich an Kapitel {n}.",
    "Gracias, ha quedado muy bien.",
    "¿Puedes resumir la página {n}?",
    "Si mi jefa vive en Turín, quizás vaya en tren.",
    "Traduce: mi hermano vive en Cádiz.",
    "> My name is Ishmael, and I work on a ship.\n> Chapter {n}",
    "| name | lives in |\n|---|---|\n| my sister | Graz |\n| row {n} | Kiel |",
    "Here is the note:\nOur company is based in Ghent.\nOur server is old.\nThe deadline is day {n}.\nSum it up.",
    "def greet(): return 'my name is Tom {n}'",
    "The rule says: we use tabs, and our repository is private.",
    "It is my favourite, number {n} I mean.",
    "She lives in Bergen and works as a judge, says chapter {n}.",
    "The build fails on line {n}.",
    "Looks good to me.",
    "Our tests take ages.",
    "I ran script {n} and got nothing.",
    "My terminal shows a red box.",
    "We need a better title for part {n}.",
    "I pasted the wrong file.",
    "I read the article about bees.",
    "The recipe needs {n} grams more.",
    "The main character is a doctor who lives in Rome.",
    "Die Tabelle hat {n} Spalten.",
    "Ich habe Absatz {n} gekürzt.",
    "La segunda frase suena rara.",
    "El código no compila.",
)


OWN = (
    "My {relation} {name} lives in {town}.",
    "My {relation} {name} works as {job}.",
    "I'm allergic to {food}.",
    "I prefer {tool} to anything else.",
    "We decided to use {tool} for the {thing}.",
    "The budget for the {thing} is {n} euros.",
    "Remember: the code of the {thing} is {n}.",
    "I work as {job} in {town}.",
    "Meine Schwester {name} wohnt in {town}.",
    "Ich arbeite als {job_de} in {town}.",
    "Mi hermana {name} vive en {town}.",
    "Prefiero {tool} a todo lo demás.",
)


@dataclass(frozen=True, slots=True)
class Planted:
    language: str
    told: str
    value: str
    changed: str
    """The later statement; empty where nothing changed."""
    new_value: str
    question: str

    @property
    def current(self) -> str:
        return self.new_value or self.value


def planted(seed: int, facts: int = FACTS, changed: int = CHANGED) -> list[Planted]:
    pick = random.Random(seed)
    people = [f"{first} {last}" for first in NAMES for last in SURNAMES]
    things = [f"{thing} of {first}" for first in NAMES for thing in THINGS]
    services = [
        f"{thing}-{kind}" for thing in ("billing", "search", "mail", "login") for kind in ("api", "jobs", "web", "edge")
    ]
    for each in (people, things, services):
        pick.shuffle(each)
    made = []
    for number in range(facts):
        language, told, change, question, values = TEMPLATES[number % len(TEMPLATES)]
        pool = services if "service" in told else things if "budget" in told else people
        about = pool[number % len(pool)]
        value, later = pick.sample(values, 2)
        is_changed = number * changed // facts != (number + 1) * changed // facts
        made.append(
            Planted(
                language,
                told.format(s=about, v=value),
                value,
                change.format(s=about, v=later) if is_changed else "",
                later if is_changed else "",
                question.format(s=about),
            )
        )
    return made


def told_by_user(count: int) -> list[str]:
    pick = random.Random(5)
    made: dict[str, None] = {}
    while len(made) < count:
        words = {"relation": pick.choice(("sister", "boss", "neighbour")), "name": pick.choice(NAMES)}
        words |= {"town": pick.choice(TOWNS), "job": pick.choice(JOBS), "job_de": pick.choice(JOBS_DE)}
        words |= {"food": pick.choice(FOODS), "tool": pick.choice(TOOLS), "thing": pick.choice(THINGS)}
        made[pick.choice(OWN).format(n=pick.randrange(100, 9999), **words)] = None
    return list(made)
