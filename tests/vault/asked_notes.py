"""Notes in four languages with questions that they answer, and questions of which they say nothing: what `is_near` and
the choice of the answering sentence are held against. `Asked` asks notes by words alone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from recto.vault.answers import FoundPassages, Lookup, answering
from recto.vault.vault import Vault
from recto.vault.vault_answers import find_passages
from recto.vault.vault_search import VaultSearch


class Asked:
    def __init__(self, root: Path, home: Path) -> None:
        self.vault = Vault(root, home / "catalog.db")
        self.search = VaultSearch(self.vault, home / "search.db", lambda: None)
        self.search.fill()

    def find(self, text: str, **lookup: object) -> FoundPassages:
        return find_passages(self.search, self.vault.read, Lookup(text, **lookup))  # type: ignore[arg-type]

    def quoted(self, text: str, **lookup: object) -> list[str]:
        found = self.find(text, **lookup)
        chosen = answering(found.passages, 3)
        return [f"{each.text} {each.more}".strip() for _, each in chosen]

    def close(self) -> None:
        self.search.close()
        self.vault.close()


@contextmanager
def asked_of(folder: Path, notes: Mapping[str, str]) -> Iterator[Asked]:
    """Asks notes that are written into a folder first."""
    for path, text in notes.items():
        place = folder / "notes" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    asked = Asked(folder / "notes", folder)
    yield asked
    asked.close()


NOTES = {
    "Bakery.md": """# Bakery

The bakery in Mill Lane opened in 2009. Farida runs it with her brother Tom.

## Opening hours

| Day | Opens | Closes |
|---|---|---|
| Weekdays | 6:30 | 18:00 |
| Saturday | 7:00 | 13:00 |

Closed on Sundays, because nobody wants to get up then.

## Rye bread

Two kilos of flour, 1.4 litres of water and 40 grams of salt. It bakes for 55 minutes at 230 degrees.

- The starter is called Gustav and is fed every evening.
- Rye bread costs 4.20 a loaf.
""",
    "Release plan.md": """# Release plan

Version 3.1 ships on 14 October. Jonas signs it off.

## Servers

| Host | Role | Memory |
|---|---|---:|
| heron | database | 64 GB |
| stork | web | 16 GB |

The backup runs at 02:15 every night and takes about 40 minutes.

## Decisions

We chose PostgreSQL over MySQL, because the team knows it. The old billing job was switched off in March.
""",
    "Garten.md": """# Schrebergarten

Der Garten hat 310 Quadratmeter und gehört seit 2018 der Familie Özdemir. Die Pacht beträgt 185 Euro im Jahr.

## Bäume

Der Apfelbaum neben der Laube ist ein Boskoop. Er wurde 1987 von Herrn Kessler gepflanzt. Der Kirschbaum musste gefällt
werden, weil er vom Pilz befallen war.

## Wasser

Das Wasser wird Mitte November abgestellt. Der Schlüssel zum Brunnen hängt bei Frau Lindner.
""",
    "Viaje.md": """# Viaje a Asturias

Salimos el 3 de agosto desde Valladolid. El alquiler del coche cuesta 412 euros por nueve días.

## Alojamiento

La casa de Llanes tiene tres habitaciones y está a 600 metros de la playa. La dueña se llama Remedios.

## Comida

Inés no puede tomar leche porque es intolerante a la lactosa.
""",
    "Chorale.md": """# Chorale

La chorale répète le mardi à 19 h 30 dans la salle Pasteur. Elle compte 34 membres.

## Concert

Le concert de Noël a lieu le 12 décembre. Madame Aubry dirige, car Luc est souffrant.
""",
}
ANSWERED = {
    "When did the bakery open?": "2009",
    "Who runs the bakery?": "Farida",
    "What time does the bakery close on Saturday?": "13:00",
    "How long does rye bread bake?": "55 minutes",
    "How much does a loaf of rye bread cost?": "4.20",
    "What is the starter called?": "Gustav",
    "Why is the bakery closed on Sundays?": "nobody wants",
    "When does version 3.1 ship?": "14 October",
    "How much memory does heron have?": "64 GB",
    "When does the backup run?": "02:15",
    "Why did we choose PostgreSQL?": "the team knows it",
    "Who signs off the release?": "Jonas",
    "Wie hoch ist die Pacht für den Garten?": "185 Euro",
    "Wer hat den Apfelbaum gepflanzt?": "Kessler",
    "Warum wurde der Kirschbaum gefällt?": "Pilz",
    "Wann wird das Wasser abgestellt?": "November",
    "Wie viele Quadratmeter hat der Garten?": "310",
    "Bei wem hängt der Schlüssel zum Brunnen?": "Lindner",
    "¿Cuánto cuesta el alquiler del coche?": "412 euros",
    "¿Cuándo salimos de Valladolid?": "3 de agosto",
    "¿Quién no puede tomar leche?": "Inés",
    "¿Cuántas habitaciones tiene la casa de Llanes?": "tres",
    "Quand a lieu le concert de Noël ?": "12 décembre",
    "Combien de membres compte la chorale ?": "34",
    "Pourquoi Madame Aubry dirige-t-elle le concert ?": "souffrant",
    "Où répète la chorale le mardi ?": "salle Pasteur",
}
UNANSWERED = (
    "What is the capital of Australia?",
    "Who painted the Mona Lisa?",
    "How do I tie a bowline?",
    "Which planet has the most moons?",
    "What is the exchange rate of the yen?",
    "How tall is the Eiffel Tower?",
    "When was the French Revolution?",
    "Can you recommend a good film for tonight?",
    "How do I center a div in CSS?",
    "Wie heißt die Hauptstadt von Kanada?",
    "Wer hat die Glühbirne erfunden?",
    "Wann beginnt die nächste Weltmeisterschaft?",
    "Wie funktioniert ein Elektromotor?",
    "¿Quién pintó Las Meninas?",
    "¿Cuál es la montaña más alta del mundo?",
    "¿Cómo se hace una tortilla de patatas?",
    "Qui a écrit Les Misérables ?",
    "Quelle est la distance entre la Terre et la Lune ?",
    "Comment changer la roue d'un vélo ?",
)
