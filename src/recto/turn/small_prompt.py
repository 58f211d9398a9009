"""What a small model is given of notes: few tokens, plain sentences, and an order in the language of the question."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recto.vault.answers import AnswerPassage, asks_itself, part_around
from recto.vault.document import note_name
from recto.vault.note_statements import NoteStatement, note_statements
from recto.vault.question import VaultQuestion, language_of

# A note that is no longer is given whole; else so much of the section around what answers.
NOTE_CHARS, AROUND_CHARS = 1_200, 500
NOTES = "Notes:"


class Orders(NamedTuple):
    answer: str
    nothing: str


# A small model follows an order in the language that it is to answer in, right before the question. Where nothing is
# found it invents an answer, whatever the order: so this is said for it. By language; an order for any other.
ORDERS = {
    "en": Orders("Answer:", "I don't know: your notes do not say it."),
    "de": Orders("Antworte auf Deutsch:", "Das weiß ich nicht: Deine Notizen sagen es nicht."),
    "es": Orders("Responde en español:", "No lo sé: tus notas no lo dicen."),
    "fr": Orders("Réponds en français :", "Je ne sais pas : vos notes ne le disent pas."),
}
ANY_LANGUAGE = Orders("Answer in the language of the question:", ORDERS["en"].nothing)


def told_orders(question: VaultQuestion, passages: Sequence[AnswerPassage]) -> Orders:
    """In the language of the question; where that is too short to tell, in that of the notes."""
    language = question.language or language_of(" ".join(each.text for each in passages))
    return ORDERS.get(language, ANY_LANGUAGE)


def told_lines(passage: AnswerPassage, statement: NoteStatement, *, is_first: bool) -> Iterator[str]:
    """A statement; around that of the first passage its section, or the whole note if it is short, a line for each
    section."""
    document, body = passage.document, passage.document.parsed.body_start
    is_short = len(document.text) - body <= NOTE_CHARS
    if not is_first or statement.start < body or not (is_short or _is_small_table(passage, statement)):
        yield _line(passage, statement.heading, [statement], statement.more)
        return
    start, end = part_around(document, statement.start, statement.end, AROUND_CHARS)
    start, end = (body, len(document.text)) if is_short else (start, end)
    starts = [each.start for each in document.parsed.headings if start < each.start < end]
    parts = list(zip((start, *starts), (*starts, end), strict=True))
    parts.sort(key=lambda part: not part[0] <= statement.start < part[1])  # what answers first, if not all has room
    for first, last in parts:
        told = [each for each in note_statements(document, first, last) if first <= each.start < last and _tells(each)]
        if told:
            yield _line(passage, told[0].heading, told)


def _is_small_table(passage: AnswerPassage, statement: NoteStatement) -> bool:
    """Whether it is in no table, or in one that a small model reads as a whole."""
    around = note_statements(passage.document, statement.start, statement.end)
    rows = [each.text for each in around if each.kind == "row" and each.table == statement.table]
    return statement.table is None or sum(map(len, rows)) <= AROUND_CHARS


def _tells(statement: NoteStatement) -> bool:
    return statement.kind not in ("table", "list") and not (statement.is_link or asks_itself(statement.text))


def _line(passage: AnswerPassage, heading: str, told: Sequence[NoteStatement], more: str = "") -> str:
    name = note_name(passage.document.path)
    place = name if heading in ("", name) else f"{name} › {heading}"
    return f"- {place}: {' '.join(map(_sentence, told))} {more}".rstrip()


def _sentence(statement: NoteStatement) -> str:
    """A row as a sentence about what stands first: a small model takes `Fuse: 5, Size: 10 A` for a fuse of 5 A."""
    first, *cells = statement.text.split(" · ")
    text = statement.text
    if statement.kind == "row" and cells:
        text = f"{first.replace(': ', ' ', 1)}: {', '.join(each.replace(': ', ' ', 1) for each in cells)}"
    return text if statement.kind == "sentence" or text.endswith((".", "!", "?", ":")) else f"{text};"
