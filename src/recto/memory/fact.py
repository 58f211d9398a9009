"""MemoryFact: one statement that is remembered between conversations, with where it came from and what it replaces.

Two statements are compared by their words: whether they say the same, and whether the newer may contradict the older.
Knows no store and no index.
"""

import hashlib
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct

from recto.base.text import clean
from recto.errors import Invalid
from recto.search.terms import STOP_WORDS, stem_word, words

FactKind = Literal["preference", "person", "project", "decision", "reference", "other"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
MAX_CHARS = 2000
"""A longer text is no fact: a note, or a memory file, holds it better."""
USER, ASSISTANT, MCP_CLIENT = "user", "assistant", "mcp"
"""Who learned a fact: the user told Recto to remember it, a model wrote it that no source says, a client brought it."""
SaidBy = Literal["user", "document", "assistant"]
_WRITERS: dict[str, SaidBy] = {
    "note": "document",
    "tool": "document",
    "attachment": "document",
    ASSISTANT: "assistant",
    MCP_CLIENT: "assistant",
}


class EarlierText(Struct, frozen=True):
    text: str
    until: str
    """When another text took its place."""


class NoteReference(Struct, frozen=True):
    """A note that is used often."""

    vault: str
    """The folder that the path is relative to."""
    path: str
    link: str
    summary: str = ""
    """What it is about, in one line."""

    @property
    def text(self) -> str:
        """As a fact tells it."""
        return f"{self.link} ({self.path}){f': {self.summary}' if self.summary else ''}"

    @property
    def key(self) -> str:
        return note_key(self.vault, self.path)


def note_key(vault: str, path: str) -> str:
    """Tells notes apart without holding their names."""
    return hashlib.sha256(f"{vault}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()


class MemoryFact(Struct, frozen=True):
    number: int
    """What people call it by."""
    text: str
    kind: FactKind = "other"
    created: str = ""
    learned_by: str = USER
    """`user`, the model that wrote down the user's words, or the file it was imported from. What a model took from
    elsewhere names that: `note PATH`, `tool NAME`, `attachment NAME`; its own words are `assistant MODEL`."""
    conversation: str | None = None
    message: str | None = None
    """The message it came from."""
    last_used: str | None = None
    uses: int = 0
    confidence: float = 1.0
    replaced_by: int | None = None
    """The newer fact that holds instead: this one is kept, and no longer sent."""
    topic: int | None = None
    """Shared by facts about the same thing, of which the newer may contradict the older: the number of the first."""
    history: tuple[EarlierText, ...] = ()
    """What it said before, the oldest first."""
    note: NoteReference | None = None
    """The note that it points to: `uses` and `last_used` are those of the note."""

    @property
    def day(self) -> str:
        return self.created[:10]

    @property
    def said_by(self) -> SaidBy:
        """Whose words it has. Only what a document or the user says is confirmed."""
        return "document" if self.note else said_by(self.learned_by)

    @property
    def is_confirmed(self) -> bool:
        return self.said_by != "assistant"

    @property
    def marked_text(self) -> str:
        """What it says, with whose words these are unless they are the user's."""
        return f"{self.text} ({mark})" if (mark := self.mark) else self.text

    @property
    def mark(self) -> str:
        if self.note or self.said_by == "user":
            return ""
        if self.is_confirmed:
            return f"from {self.learned_by}"
        by = "an MCP client" if self.learned_by == MCP_CLIENT else "the assistant"
        return f"noted by {by}, not confirmed by the user"


def said_by(learned_by: str) -> SaidBy:
    return _WRITERS.get(learned_by.partition(" ")[0], "user")


def checked_text(text: str) -> str:
    """One line, without control characters. Raises Invalid for nothing, and for more than a fact may be."""
    line = " ".join(clean(text)[0].split())
    line = "".join(char for char in line if char.isprintable())
    if not line:
        raise Invalid("a fact needs a text")
    if len(line) > MAX_CHARS:
        raise Invalid(
            f"a fact is a statement of at most {MAX_CHARS:,} characters, and this has {len(line):,}; "
            "keep it as a note, or split it",
            characters=len(line),
        )
    return line


def checked_kind(kind: str) -> FactKind:
    for known in FACT_KINDS:
        if kind == known:
            return known
    raise Invalid(f"there is no kind of fact {kind!r}; use {', '.join(FACT_KINDS)}", kind=kind)


# -- kinds

_KIND_CUES: tuple[tuple[FactKind, re.Pattern[str]], ...] = (
    (
        "decision",
        re.compile(
            r"\b(?:decid\w+|agreed|settled on|we (?:will|chose|go with)|entschieden|beschlossen|einigten|vereinbart"
            r"|decid\w+|acordamos|hemos elegido)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "preference",
        re.compile(
            r"\b(?:prefer\w*|favou?rite|likes?|loves?|hates?|dislikes?|allergic|vegan|vegetarian|always use|never use"
            r"|call me|bevorzug\w*|lieblings\w*|mag|lieber|hasst?|allergisch|prefier\w*|favorit\w*|gusta\w*"
            r"|odi\w+|alérgic\w+)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "person",
        re.compile(
            r"\b(?:my (?:name|wife|husband|partner|son|daughter|mother|father|sister|brother|boss|manager|friend"
            r"|doctor"
            r"|dentist|neighbou?r|colleague|cat|dog)|birthday|mein\w* (?:name|frau|mann|sohn|tochter|mutter|vater"
            r"|schwester|bruder|chef\w*|freund\w*|arzt|ärztin)|geburtstag|mi (?:nombre|esposa|marido|hijo|hija|madre"
            r"|padre|hermana|hermano|jefe|jefa|amig\w+|médic\w+)|cumpleaños)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "project",
        re.compile(
            r"\b(?:project|deadline|release|repository|repo|milestone|budget|server|database|branch|projekt|frist"
            r"|termin"
            r"|datenbank|proyecto|plazo|presupuesto|servidor)\b",
            re.IGNORECASE,
        ),
    ),
)


def guessed_kind(text: str) -> FactKind:
    """By the first cue that a statement holds; a guess, which can be changed."""
    return next((kind for kind, cue in _KIND_CUES if cue.search(text)), "other")


# -- comparing

# Statements with this share of their words in common, and the same numbers, say the same.
SAME = 0.85
# The newer of two statements may contradict the older if the shorter shares this much of its words, or this much where
# it says itself that something has changed.
ABOUT_THE_SAME, SAID_TO_CHANGE = 0.5, 0.25
_CHANGED = re.compile(
    r"\b(?:now|anymore|no longer|not any ?more|instead|actually|correction|changed?|moved|switched|renamed|replaced"
    r"|updated?|from now on|since then|jetzt|nun|nicht mehr|stattdessen|geändert|umgezogen|gewechselt|künftig"
    r"|ab sofort"
    r"|ahora|ya no|en vez|en lugar|cambi\w+|mud[aó]\w*|traslad\w+|a partir de|maintenant|désormais|déménag\w+"
    r"|chang\w+"
    r"|ora|adesso|trasferit\w+|agora|mudou|теперь|переехал\w*|больше не)\b"
    r"|搬|改|现在|現在|不再|换|換|今は|引っ越|انتقل|الآن|이사|이제",
    re.IGNORECASE,
)
# Verbs of which many objects are true at once: who likes tea may like coffee.
_ADDING_WORDS = (
    "like likes love loves enjoy enjoys hate hates have has own owns use uses speak speaks know knows visit visited "
    "watch read play plays eat eats drink drinks buy bought want wants need needs call called name named mag mögen "
    "liebe haben hat spreche spricht esse trinke kenne besuche gusta gustan amo tengo tiene hablo habla como "
    "bebo conozco uso"
)
_ADDING = frozenset(map(stem_word, _ADDING_WORDS.split()))
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|cannot|\w+n[’']t|nicht|kein\w*|nie|niemals|nunca|jamás|sin|pas|jamais|non|niet|geen"
    r"|nooit|não|nem|не|нет|никогда)\b|[不没沒]|ない|ません|않|못",
    re.IGNORECASE,
)
# How a model calls the user, who says "I".
THE_USER = re.compile(
    r"\b(?:the\s+)?(?:users?|(?:be)?nutzer(?:in)?s?|usuari[oa]s?|usuári[oa]s?|utilisat(?:eur|rice)s?|utente|gebruikers?"
    r"|użytkowni\w{1,4}|пользовател\w{1,3})(?:['’]s)?\b|用[户戶]|使用者|ユーザー|사용자|المستخدم",
    re.IGNORECASE,
)
# Whom a statement is about stands among its first words.
SUBJECT_WORDS = 4
_FULL_NAME = re.compile(r"\b[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@lru_cache(maxsize=4096)
def fact_stems(text: str) -> frozenset[str]:
    """The words that a statement is about, in any form."""
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


def says_same(one: str, other: str) -> bool:
    """Whether two statements say the same in nearly the same words."""
    if numbers_in(one) != numbers_in(other) or is_negated(one) != is_negated(other):
        return False
    ours, theirs = fact_stems(one), fact_stems(other)
    if not ours or not theirs:
        return one.casefold().strip(" .!") == other.casefold().strip(" .!")
    return len(ours & theirs) >= SAME * len(ours | theirs)


def may_contradict(newer: str, older: str) -> bool:
    """Whether two statements are about the same thing and say something else of it. Rather once too often: both are
    shown, and the user decides."""
    ours, theirs = _topic_stems(newer), _topic_stems(older)
    shared = len({*ours} & {*theirs})
    least = min(len(ours), len(theirs))
    if not shared or says_same(newer, older) or not may_share_subject(newer, older):
        return False
    if ours[0] not in theirs and theirs[0] not in ours:  # what a statement is about comes first in it
        return False
    return shared >= (SAID_TO_CHANGE if _CHANGED.search(newer) else ABOUT_THE_SAME) * least


def may_share_subject(one: str, other: str) -> bool:
    """Two statements with full names are about the same only if they share one: Anna Weber is not Bruno Weber."""
    ours, theirs = (full_names(" ".join(text.split()[:SUBJECT_WORDS])) for text in (one, other))
    return not ours or not theirs or bool(ours & theirs)


def is_about_others(text: str, names: Collection[str]) -> bool:
    """Whether a statement names somebody who shares a part of one of these full names, and nobody who may be meant. A
    capital at the beginning of a sentence may have made a name longer than it is."""
    if not names:
        return False
    asked, told = ([frozenset(re.split("[ -]", name)) for name in some] for some in (names, full_names(text)))
    pairs = [(one, other) for one in asked for other in told]
    may_be_meant = any(one <= other or other <= one for one, other in pairs)
    return not may_be_meant and any(one & other for one, other in pairs)


def full_names(text: str) -> set[str]:
    """Scripts without capitals have none."""
    found = _FULL_NAME.findall(text)
    return {name for name in found if all(word[0].isupper() for word in re.split("[ -]", name))}


@lru_cache(maxsize=4096)
def _topic_stems(text: str) -> tuple[str, ...]:
    """In their order, without numbers, which are what changes, and without the words that only say that it did."""
    found = (stem_word(word) for word in words(_CHANGED.sub(" ", text)) if word not in STOP_WORDS)
    topical = (stem for stem in found if stem not in _ADDING and not any(char.isdigit() for char in stem))
    return tuple(dict.fromkeys(topical))


def numbers_in(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def is_negated(text: str) -> bool:
    return _NEGATION.search(text) is not None
