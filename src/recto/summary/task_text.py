"""Task text: what a user asks for, in the user's own words, out of a message that may be pages of a prompt.

Prompts of programs put the task into a section, in tags or under a heading, and surround it with rules, examples and
the state of the machine. Told by the form of the prompt and the names of its sections, in any order.
"""

import re
from collections.abc import Iterator

from recto.chat.priority import CHATTER
from recto.summary.machine_output import is_machine_made, is_noise
from recto.summary.model_orders import is_order, is_prompt_frame
from recto.summary.pasted_text import own_words
from recto.summary.sentences import rate_sentence, tagged_sentences, word_set
from recto.summary.truncation import cut_text

MAX_TASK = 400
_MAX_EXAMINED = 6000
# So much of a prompt is searched for its sections.
_MAX_PROMPT = 60_000

_TASK, _ASIDE = "task", "aside"
# The last word of a section's name says what it is.
_TASK_WORDS = word_set(
    "task issue description problem query request question goal objective ticket statement report message assignment "
    "story challenge bug feature todo aufgabe anfrage frage fehler ziel problembeschreibung aufgabenstellung tarea "
    "problema solicitud pregunta objetivo tâche problème demande"
)
_ASIDE_WORDS = word_set(
    "instructions instruction rules rule guidelines tips hints workflow format formatting tools tool environment "
    "reminder examples example demonstration demonstrations commands boundaries submission settings setting important "
    "memory usage interface warnings response policies hinweise regeln anweisungen umgebung beispiele beispiel "
    "werkzeuge instrucciones reglas ejemplos ejemplo entorno herramientas consignes règles exemples exemple outils"
)
# A person may write these as headings, but hardly as tags.
_ASIDE_TAGS = word_set("details context files file notes info information diagnostics attachments workspace directory")
_ASIDE_STARTS = word_set("important response output recommended example formatting how")
_TASK_STARTS = word_set("task issue aufgabe tarea")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TAG = re.compile(r"^[ \t]*<([A-Za-z][\w-]*)(?: [^<>\n]*)?>", re.MULTILINE)
_HEADING = re.compile(
    r"^(?:(?P<marks>#{1,6})[ \t]+(?P<title>[^\n]{1,80}?)[ \t#:]*"
    r"|(?P<capitals>[A-ZÄÖÜ][A-ZÄÖÜ _/-]{2,40})(?: \([^\n)]{1,40}\))?:"
    r"|\*\*(?P<bold>[^*\n]{1,60}?):?\*\*:?)[ \t]*$",
    re.MULTILINE,
)
_SHOWN = re.compile(
    r"^[ \t]*[-=#*<]{2,}[ \t]*(?:BEGIN |START(?: OF)? )?((?:DEMONSTRATION|EXAMPLE|SAMPLE|BEISPIEL|EJEMPLO)S?)\b[^\n]*\n"
    r".*?(?:^[ \t]*[-=#*<]{2,}[ \t]*(?:END|ENDE|FIN)\b[^\n]*$|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_LINK = re.compile(r"\[([^\]\n]{1,200})\]\([^)\s]{12,}\)")
_WORD = re.compile(r"[^\W\d_]+")
_ONLY_TITLE = re.compile(r"#{1,6} |\*\*[^*]+\*\*:?$|[A-Z _-]{3,}:$")
_ENDS = (".", "!", "?", ":", ",", ";", "…", "。", "！", "？", "-", "–")
_GOES_ON = re.compile(
    r"(?:(?:ok(?:ay)?|yes|yep|sure|please|thanks?|thank you|continue|go on|go ahead|keep going|proceed|carry on|do it"
    r"|do that|try again|next|great|good|perfect|looks good|fine|and|then|now|with it|with that|weiter|mach|machen|sie"
    r"|ja|gut|bitte|danke|super|prima|genau|so|sigue|continúa|adelante|sí|vale|gracias|bien|oui|vas-y|d'accord|merci"
    r"|from where you left off|where you left off)(?:[\s,.!…]+|$))+",
    re.IGNORECASE,
)


_ASKS_STATE = re.compile(
    r"(?:(?:so|ok|okay|and|et|und|y|en)[, ]+)?(?:what(?:['’]s| is| else is) (?:still )?(?:left|open|next|missing|to do)"
    r"|il (?:nous )?reste quoi|qu['’]est-ce qu['’]il reste|que reste-t-il|was (?:ist|bleibt|fehlt)(?: jetzt)? noch"
    r"(?: offen| übrig| zu tun)?|qué (?:nos )?(?:queda|falta)|wat (?:is er|moet er"
    r"|blijft er) nog)[^.?!]{0,20}\s?[?!.]*",
    re.IGNORECASE,
)


def find_task(text: str) -> str:
    """The task in the user's own words; empty if nothing is asked for, or only how things stand."""
    start = text[:200].strip()
    if _GOES_ON.fullmatch(start) or _ASKS_STATE.fullmatch(start.lstrip("¿¡ ")):
        return ""
    text = text[:_MAX_PROMPT]
    told = _sentences(_section(text)) or _sentences(text)
    asked = " ".join(_joined(told)[: 2 * MAX_TASK].split())
    return cut_text(asked, MAX_TASK) if asked.count(" ") > 1 or not asked.isascii() else ""


def prose(text: str) -> list[str]:
    """Sentences that a person wrote: no code, no output of machines, no small talk."""
    return [
        sentence
        for sentence, is_code in tagged_sentences(text[:_MAX_EXAMINED])
        if not is_code
        and not is_noise(sentence)
        and not is_machine_made(sentence)
        and rate_sentence(sentence) != CHATTER
    ]


def _sentences(text: str) -> list[str]:
    """Without the frame of a prompt, and without headings that are not the first words."""
    own = prose(own_words(_LINK.sub(r"\1", text[:_MAX_EXAMINED])))
    found = [sentence for sentence in own if not (is_prompt_frame(sentence) or is_order(sentence))]
    found = [sentence for at, sentence in enumerate(found) if at == 0 or not _ONLY_TITLE.match(sentence)]
    return [sentence.strip("# *\t") if _ONLY_TITLE.match(sentence) else sentence for sentence in found]


def _joined(found: list[str]) -> str:
    """A title is a sentence of its own."""
    return " ".join(sentence if sentence.endswith(_ENDS) else f"{sentence}." for sentence in found[:-1]) + (
        f" {found[-1]}" if found else ""
    )


def _section(text: str) -> str:
    """The part of a prompt that holds the task; all of it where it has no parts."""
    text = without_examples(text)
    tagged = list(_tagged(text))
    tasks = [inside for kind, inside in tagged if kind == _TASK]
    return _under_headings("\n\n".join(tasks or (part for kind, part in tagged if kind != _ASIDE)))


def _tagged(text: str) -> Iterator[tuple[str, str]]:
    """What stands between tags, with its kind, and what stands outside."""
    at = 0
    for found in _TAG.finditer(text):
        kind = _kind(found[1], is_tag=True) if found.start() >= at else ""
        end = text.find(f"</{found[1]}>", found.end()) if kind else -1
        if end < 0:
            continue
        yield "", text[at : found.start()]
        yield kind, text[found.end() : end]
        at = end + len(found[1]) + 3
    yield "", text[at:]


def without_examples(text: str) -> str:
    """Without what a prompt shows as an example, and the lines before it that speak of it."""
    shown = _SHOWN.search(text)
    if shown is None:
        return text
    word = shown[1].rstrip("sS").lower()
    before = [line for line in text[: shown.start()].splitlines() if word not in line.lower()]
    return "\n".join((*before, _SHOWN.sub("\n", text[shown.start() :])))


def _under_headings(text: str) -> str:
    """Of a prompt, what stands under headings such as `ISSUE:`, or else what is not under headings such as `RULES:`."""
    parts = list(_parts(text))
    kinds = {kind for kind, _ in parts}
    if _ASIDE not in kinds:
        return text
    wanted = {_TASK} if _TASK in kinds else kinds - {_ASIDE}
    return "\n".join(part for kind, part in parts if kind in wanted)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Each part with its kind: a task, an aside, or neither."""
    kind, start, level = "", 0, 0
    for heading in _HEADING.finditer(text):
        named = _kind(heading["title"] or heading["capitals"] or heading["bold"])
        depth = len(heading["marks"] or "")
        if not named and not (kind == _ASIDE and 0 < depth <= level):
            continue
        yield kind, text[start : heading.start()]
        kind, start, level = named, heading.end(), depth
    yield kind, text[start:]


def _kind(name: str, *, is_tag: bool = False) -> str:
    words = [word.lower() for word in _WORD.findall(_CAMEL.sub(" ", name))]
    if not words:
        return ""
    if words[-1] in _ASIDE_WORDS or words[0] in _ASIDE_STARTS or (is_tag and words[-1] in _ASIDE_TAGS):
        return _ASIDE
    return _TASK if words[-1] in _TASK_WORDS or words[0] in _TASK_STARTS else ""
