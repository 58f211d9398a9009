"""Quoted mails: which lines of a text belong to mails that it quotes or forwards, and who wrote them.

Knows the signs (`> `), the lines that introduce a quotation, and headers, in four languages.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from recto.summary.model_orders import SOMEBODY
from recto.summary.sentences import sentences, word_set


class TextLine(NamedTuple):
    """A line of a text, and who says it: its author (None), or somebody who is quoted."""

    start: int
    end: int
    text: str
    is_code: bool = False
    speaker: str | None = None


def attribute(lines: list[TextLine], start: int, end: int, speaker: str) -> None:
    for at in range(start, end):
        lines[at] = lines[at]._replace(speaker=speaker)


# -- where a quotation ends


def paragraph_end(lines: Sequence[TextLine], start: int, end: int | None = None) -> int:
    end = len(lines) if end is None else end
    return next((at for at in range(start, end) if not lines[at].text.strip()), end)


_REQUEST = re.compile(
    r"(?:please|pls|bitte|por favor|s['’]il (?:te|vous)|can you|could you|kannst du|können sie|puedes|peux-tu"
    r"|pouvez-vous|what|how|was|wie|qué|cómo|comment|fass|sum(?:marize| up)|resume|résume|translate|übersetz|tradu[ci]"
    r"|draft|write|schreib|escribe|écris|reply|antworte|responde|réponds)",
    re.IGNORECASE,
)


_MAX_SIGNATURE_WORDS, _MAX_HEADERS, _MAX_NAME = 3, 12, 40
_MAX_INTRO, _MAX_SIGN_OFF = 400, 60
# How mails end. What stands after the name that follows is the author's again.
_SIGN_OFF = re.compile(
    r"\W*(?:(?:best|kind|warm)(?: regards| wishes)?|regards|cheers|thanks|sincerely|yours\b.*|(?:viele|liebe|beste"
    r"|herzliche|schöne|mit freundlichen|mit besten) grü(?:ß|ss)en?|(?:viele|lieben|schönen|besten) gruß|gruß|lg"
    r"|vg|mfg|(?:un )?saludos?|atentamente|un abrazo|cordialement|bien à (?:vous|toi)|amicalement|salutations)"
    r"(?:,? (?:[A-ZÄÖÜÉ]\w*\W?){1,2})?[,.!]?\s*$",
    re.IGNORECASE,
)


def own_ending(lines: Sequence[TextLine], start: int) -> int:
    """Where the author speaks again: after the name that ends a mail, or in a last paragraph that asks something."""
    ends = [at for at in range(start, len(lines)) if _is_sign_off(lines[at].text)]
    paragraphs = _paragraphs(lines, ends[-1] if ends else start)
    later = [first for first, last in paragraphs[1:] if not _is_signature(lines[first:last])]
    if ends:
        return later[0] if later else len(lines)
    first, last = paragraphs[-1] if paragraphs and paragraphs[-1][0] > start else (start, start)
    asked = "\n".join(line.text for line in lines[first:last])
    is_asking = "?" in asked or any(_REQUEST.match(sentence) for sentence in sentences(asked))
    return first if is_asking else len(lines)


def _is_sign_off(text: str) -> bool:
    return len(text) <= _MAX_SIGN_OFF and _SIGN_OFF.match(text) is not None


def _paragraphs(lines: Sequence[TextLine], start: int) -> list[tuple[int, int]]:
    found = []
    while start < len(lines):
        end = paragraph_end(lines, start)
        found += [(start, end)] if end > start else []
        start = end + 1
    return found


def _is_signature(lines: Sequence[TextLine]) -> bool:
    """A name alone, an address or a telephone number."""
    texts = [line.text.strip() for line in lines]
    return all(len(text.split()) <= _MAX_SIGNATURE_WORDS and not text.endswith((".", "!", "?")) for text in texts)


# -- mails

_MARKED = re.compile(r"[ \t]{0,3}>(?!>>)(?:[ \t]?>)*[ \t]?")
_MARKED_DEEP = re.compile(r"[ \t]{0,3}>(?:[ \t]?>)*[ \t]?")
_WROTE = r"(?:wrote|writes|schrieb|schreibt|escribió|escribe|a écrit|écrit|ha scritto|escreveu|schreef|写道)"
# "A service that writes files" is nobody who wrote.
_RELATIVE = "".join(rf"(?<!\b{word} )" for word in ("that", "which", "who", "que", "qui", "der", "die", "das", "dat"))
_MAIL_INTRO = re.compile(
    rf"\s*(?=[^\n]*[\d@])(?P<lead>[^\n]{{0,240}}?){_RELATIVE}\b{_WROTE}\b(?P<rest>[^\n]{{0,160}}?)\s?[:：]\s*$"
)
# The second line of such an introduction.
_WRITTEN = re.compile(rf"[^\n]{{0,60}}\b{_WROTE}\b[^\n]{{0,60}}[:：]$")
_SAID_INTRO = re.compile(
    rf"[^\n]{{2,120}}\b(?:{_WROTE}|said|says|replied|answered|sagte|sagt|meinte|meint|antwortete|dijo|dice|respondió"
    r"|a dit|a répondu)\b[^\n.!?]{0,60}[:：]\s*$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"<[^<>\n]*>|\(?\S+@\S+\)?|mailto:\S+")
_SENDER = re.compile(r"[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3}$")
_HEADER = re.compile(
    r"\s*[*_]{0,2}(?P<key>from|to|cc|subject|date|sent|von|an|betreff|datum|gesendet|de|para|asunto|fecha|enviado"
    r"(?: el)?|à|objet|envoyé|发件人|收件人|主题)[*_]{0,2}\s?[:：][*_]{0,2}\s*(?P<value>\S.*)",
    re.IGNORECASE,
)
_FROM, _SUBJECT = word_set("from von de 发件人"), word_set("subject betreff asunto objet 主题")
_FORWARDED = re.compile(
    r"\s*(?:-{2,}|_{3,}|={3,})?\s*(?:begin |anfang der )?(?:original|forwarded|weitergeleitete|ursprüngliche|mensaje"
    r"|message)[\w '’]{0,40}(?:message|nachricht|mail|original|reenviado|transféré|origine)\s*"
    r"(?:-{2,}|_{3,}|={3,}|:)\s*$",
    re.IGNORECASE,
)


_ENDINGS = (":", "：", "--", "__", "==")


def attribute_mails(lines: list[TextLine]) -> None:
    """Gives the lines of quoted mails their writers."""
    at, writer = 0, SOMEBODY
    while at < len(lines):
        start = _mail_start(lines, at)
        if start is None:
            is_quoted = _unmark(lines, at, writer)
            writer = writer if is_quoted or not lines[at].text.strip() else SOMEBODY
            at += 1
            continue
        writer = start.writer or writer
        for place in range(at, at + start.size):
            lines[place] = lines[place]._replace(text=_subject(lines[place].text), speaker=writer)
        at += start.size
        if start.is_header or not any(_MARKED.match(line.text) for line in lines[at : at + 3]):
            attribute(lines, at, _next_mail(lines, at), writer)


def _unmark(lines: list[TextLine], at: int, writer: str) -> bool:
    """Whether a line is quoted: it has a sign, which is removed, or the line before says that somebody says this."""
    line, before = lines[at], lines[at - 1] if at else None
    marked = _MARKED_DEEP if before and before.speaker is not None else _MARKED
    if not line.is_code and line.text.lstrip().startswith(">") and (sign := marked.match(line.text)):
        if not line.text[sign.end() :] and marked is _MARKED:
            return False  # a bracket that closes something
        lines[at] = line._replace(text=line.text[sign.end() :], speaker=writer)
    elif _is_said_intro(line):
        start = at + 1 + (at + 1 < len(lines) and not lines[at + 1].text.strip())
        if start < len(lines) and not _MARKED.match(lines[start].text):
            attribute(lines, start, paragraph_end(lines, start), SOMEBODY)
    return lines[at].speaker is not None


def _is_said_intro(line: TextLine) -> bool:
    """ "My boss wrote:" """
    is_ending = line.text.endswith((":", "：")) and len(line.text) <= _MAX_INTRO
    return is_ending and line.speaker is None and _SAID_INTRO.match(line.text) is not None


class _MailStart(NamedTuple):
    """The lines that say that a mail follows."""

    size: int
    writer: str
    is_header: bool


def _mail_start(lines: Sequence[TextLine], at: int) -> _MailStart | None:
    text = lines[at].text
    if lines[at].is_code:
        return None
    if _HEADER.match(text):
        return _headers(lines, at)
    if len(text) > _MAX_INTRO:
        return None
    if text.endswith(_ENDINGS) and _FORWARDED.match(text):
        return _MailStart(1, SOMEBODY, is_header=True)
    is_ending = text.endswith((":", "："))
    if is_ending or (at + 1 < len(lines) and _WRITTEN.match(lines[at + 1].text)):
        return _mail_intro(text if is_ending else f"{text.strip()} {lines[at + 1].text.strip()}", 1 if is_ending else 2)
    return None


def _headers(lines: Sequence[TextLine], at: int) -> _MailStart | None:
    """The header lines of a mail that start here."""
    found: list[re.Match[str]] = []
    for line in lines[at : at + _MAX_HEADERS]:
        if not (header := _HEADER.match(line.text)):
            break
        found.append(header)
    keys = {header["key"].lower() for header in found}
    is_mail = not keys.isdisjoint(_SUBJECT) or any("@" in header["value"] for header in found)
    if len(found) < 2 or keys.isdisjoint(_FROM) or not is_mail:
        return None
    sender = next(header["value"] for header in found if header["key"].lower() in _FROM)
    name = " ".join(_ADDRESS.sub(" ", sender).strip(" \t;\"'*_[]").split())
    return _MailStart(len(found), name.replace(":", " ")[:_MAX_NAME], is_header=True)


def _subject(text: str) -> str:
    """What a header tells of a mail, beside who wrote it."""
    header = _HEADER.match(text)
    return text if header and header["key"].lower() in _SUBJECT else ""


def _mail_intro(text: str, size: int) -> _MailStart | None:
    """ "On 3 May Ben wrote:", on one line or two."""
    found = _MAIL_INTRO.match(text) if len(text) <= _MAX_INTRO else None
    return _MailStart(size, _person(found["lead"]) or _person(found["rest"]), is_header=False) if found else None


def _person(text: str) -> str:
    """The name at the end of what stands before an address."""
    bare = _ADDRESS.sub(" ", text).strip(" \t,;:\"'*_")
    tail = bare.rpartition(",")[2].strip()
    found = _SENDER.search(tail)
    return _trimmed(found[0]) if found else SOMEBODY


def _trimmed(name: str) -> str:
    words = name.split()
    while words and not words[0][0].isupper():
        words = words[1:]
    return " ".join(words)[:_MAX_NAME]


def _next_mail(lines: Sequence[TextLine], start: int) -> int:
    """Where a mail ends that is quoted without signs."""
    while start < len(lines) and not lines[start].text.strip():
        start += 1
    for at in range(start, len(lines)):
        if _mail_start(lines, at):
            return at
    return own_ending(lines, start)


def is_marked(line: str) -> bool:
    return _MARKED.match(line) is not None
