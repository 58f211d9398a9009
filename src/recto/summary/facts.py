"""Facts: the parts of a text that can be verified, such as numbers, dates, names, paths, URLs, commands, identifiers,
quotations and errors. Reads any text in linear time and knows no message.

In machine output (tool results, code, logs) only a few facts are significant: paths, URLs, versions, measurements,
commands, errors, and numbers in lines that report an outcome. The others only prove that something occurred.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from recto.summary.entities import (
    DATE_PATTERN,
    LETTER,
    NUMBER_PATTERN,
    TIME_PATTERN,
    NameSpan,
    find_names,
    kind_of_name,
    normalize_date,
    normalize_name,
    normalize_number,
    normalize_time,
    unit_end,
)
from recto.summary.machine_output import OUTCOME, PROSE, ROW, LineKinds, classify_lines
from recto.summary.sentences import word_set
from recto.text import pieces_of, text_cache

_MAX_LENGTH = 160
# A number with more is no small count.
_MAX_SMALL = 2
_PIECE_LENGTH = 1 << 16
_MAX_FENCED_LINES = 200


class Fact(Struct, frozen=True, gc=False):
    """A part of a text that can be verified. There are many, and they are in no cycle."""

    kind: str
    """decision, date, time, number, version, path, url, command, identifier, name, quote or error."""
    text: str
    """As written."""
    normal: str
    """The same for all spellings."""
    start: int = 0
    end: int = 0
    is_significant: bool = True
    """Whether a reader would call it a fact. An insignificant one still proves that something was said."""
    counts: str = ""
    """The word right after a number without a unit: what it counts, if that is no small word."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.normal


_EXTENSIONS = word_set(
    "py pyi ipynb js jsx mjs ts tsx rs go c h cc cpp hpp java kt rb php cs swift sh bash sql db sqlite md rst txt "
    "json jsonl toml yaml yml ini cfg conf env lock log csv tsv xml html htm css scss svg png jpg jpeg gif pdf doc "
    "docx xls xlsx ppt pptx zip gz tar tgz dcm bin exe so dll whl ps1 bat tf proto vue parquet gguf mp3 mp4 wav "
    "patch diff"
)
_DOMAINS = word_set("com org net io dev ai edu gov de fr es uk eu app co")
_COMMANDS = (
    "make|cmake|git|gh|pip3?|uv|npm|npx|yarn|pnpm|node|deno|bun|docker|docker-compose|podman|kubectl|helm|python3?|pytest|"
    "tox|ruff|mypy|cargo|rustc|go|java|mvn|gradle|curl|wget|ssh|scp|rsync|cd|ls|cat|cp|mv|rm|mkdir|chmod|chown|grep|rg|find|"
    "sed|awk|tar|unzip|sudo|apt|apt-get|brew|systemctl|journalctl|psql|sqlite3|redis-cli|terraform|ansible|aws|gcloud|az|"
    "echo|export|source|bash|sh|recto|ffmpeg|openssl|nc|nmap|strings|objdump|gdb"
)
_PLAIN = rf"[a-z]++(?![{LETTER}(]|[.:/@\\-][{LETTER}/\\])"
_PATTERNS = {
    # ordinary words, as many as follow each other: most of a text is skipped in a few steps
    "plain": rf"{_PLAIN}(?>(?:[,.;:!?]?[ \n]{_PLAIN})*)",
    # a word with a capital letter, where nothing follows that could make it a date or anything else
    "capital": r"[A-Z][a-z]*+(?=[ ,;!?\n]|[.:]\s)(?!\.?,?\s+(?:de\s+|of\s+)?\d)",
    "url": r"""(?:https?|ftp|ssh|git|s3|file|wss?|postgres(?:ql)?|mysql|redis|mongodb)://[^\s"'<>()\[\]{}`|\\^,;]++"""
    rf"|[{LETTER}.+-]{{1,64}}+@[{LETTER}-]{{1,63}}+(?>(?:\.[{LETTER}-]{{2,63}}+)+)",
    "date": rf"(?=[\dA-Z])(?:{DATE_PATTERN})",
    "time": rf"(?=\d)(?:{TIME_PATTERN})",
    "path": rf"(?:~|\.{{1,2}})?/[{LETTER}.@-]++(?>(?:/[{LETTER}.@-]++)*)/?+|[A-Za-z]:\\[{LETTER}.\\-]++"
    rf"|(?![\d/.,]++(?![A-Za-z_]))[{LETTER}.@-]++(?>(?:/[{LETTER}.@-]++)+)/?+|\.[a-z][{LETTER}-]*+(?>(?:\.[{LETTER}-]++)*)",
    # an account or a phone number in groups
    "groups": rf"(?=[A-Z+])(?:[A-Z]{{2}}\d{{2}}(?>(?:[ ]?[A-Z\d]{{4}}){{2,7}})(?:[ ]?[A-Z\d]{{1,4}})?(?![{LETTER}])"
    rf"|\+\d{{1,3}}(?>(?:[ -]\d{{2,}}){{1,5}})(?![{LETTER}]))",
    "version": rf"[vV]\d++(?>(?:\.\d++)*)(?:-?[a-z]++\.?\d*+)?(?![{LETTER}])"
    rf"|\d++\.\d++\.\d++(?>(?:\.\d++)*)(?:[-+.]?(?:rc|a|b|alpha|beta|dev|post)[\w.]*+)?(?![{LETTER}])",
    "hash": rf"(?=\d*+[a-f])(?=[a-f]*+\d)[a-f\d]{{7,64}}+(?>(?:-[a-f\d]{{4,12}}+)*)(?![{LETTER}])"
    rf"|0x[\da-fA-F]++(?![{LETTER}])",
    "number": rf"(?=[\d$€£¥₹+−UEGC-])(?:{NUMBER_PATTERN})",
    "flag": rf"--?[a-z][{LETTER}-]++",
    "ticket": rf"[A-Z][A-Z\d]{{1,9}}+-\d++(?![{LETTER}])|\#\d++(?![{LETTER}])",
    "word": rf"\$?[{LETTER}]++(?:['’][a-zA-Z]++)?(?>(?:(?:[._-]|::)[{LETTER}]++)*)(?:\(\))?",
    "katakana": r"[\u30a1-\u30fa\u30fc]{3,}+(?>(?:・[\u30a1-\u30fa\u30fc]++)*)",
}
# a lookahead rejects what no pattern starts with, which is faster
_TOKEN_START = rf"(?=[{LETTER}$#~./+−€£¥₹\u30a1-\u30fc-])"
_TOKEN = re.compile(
    rf"(?<![{LETTER}.@/\\-]){_TOKEN_START}(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items())
    + ")"
)
_QUOTE = re.compile(
    r'"[^"\n]{3,80}+"|“[^”\n]{3,80}+”|„[^“”\n]{3,80}+[“”]|«[^»\n]{3,80}+»|[「『《][^」』》\n]{2,80}+[」』》]'
)
_OPENING_QUOTES = '"“„«「『《'
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{2,120}+)`(?!`)")
_DOT_FILE = re.compile(
    r"\.(?:env|git\w*|bash\w*|zsh\w*|profile|config|local|ssh|cache|npmrc|docker\w*|venv|vscode|pre-commit)"
)
_PORT = re.compile(rf":\d{{2,5}}+(?![{LETTER}:])")
_LINE_NUMBER = re.compile(rf"[:#]L?\d++(?![{LETTER}])")
_COMMAND = re.compile(rf"(?:sudo )?(?:(?:{_COMMANDS})(?:[ \t]++[^\n]{{1,150}}+)?|\./[^\n]{{2,150}}+)$")
_COMMAND_LINE = re.compile(r"^[ \t]*+(?:(?:bash-)?[$❯%]|>>>?)[ \t]++([^\n]{2,160}+)$", re.MULTILINE)
_PROMPTS = "$❯%>"
_COMMAND_ARGUMENT = re.compile(r"^(?:command|cmd|script): ([^\n]{2,160}+)", re.MULTILINE)
_ERROR = re.compile(
    r"^[ \t]*+((?:[A-Za-z_.]{0,60}?(?:Error|Exception)|fatal|error)\b):[ \t]*+([^\n]{3,100}+)", re.MULTILINE
)
_ERROR_WORDS = ("Error", "Exception", "fatal", "error")
_CAMEL = re.compile(r"[a-z\u00df-\u00ff\d][A-Z]|[A-Z]{2}[a-z]{2}")
_COUNTED_NOUN = re.compile(r"[ \xa0](?:[a-z]{3,}s|passed|failed|skipped|people|men|women|children)\b")
_NEXT_WORD = re.compile(r"[ \xa0]([^\W\d_]{2,40})")
_NUMBERING = re.compile(r"[.):](?:\s|$)")
_ANY_LETTER = re.compile(r"[^\W\d_]")


def find_facts(text: str, *, author: str = "") -> list[Fact]:
    """All facts in order of position, as often as they occur. `author` is PROSE or MACHINE where it is known who wrote
    all of the text; otherwise each line is judged by its looks."""
    return facts_on_lines(text, classify_lines(text, author=author))


def facts_on_lines(text: str, lines: LineKinds) -> list[Fact]:
    """The same for a text whose lines are classified already."""
    found = [*_tokens(text, lines), *_quotations(text, lines), *_commands(text, lines), *_errors(text)]
    return _without_nested(sorted(found, key=_by_position))


def _by_position(fact: Fact) -> tuple[int, int]:
    return fact.start, -fact.end


def _without_nested(found: list[Fact]) -> list[Fact]:
    """Drops numbers and names inside a path or an address, and the unit of a number."""
    kept, end = [], 0
    for fact in found:
        if fact.start < end and fact.kind in ("number", "name", "identifier"):
            continue
        if fact.kind in ("path", "number", "url"):
            end = fact.end
        kept.append(fact)
    return kept


def _tokens(text: str, lines: LineKinds) -> Iterator[Fact]:
    words: list[NameSpan] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "plain" or kind is None:
            continue
        start, end = match.span()
        if end - start > _MAX_LENGTH:
            continue
        if kind == "capital":
            if lines.at(start) == PROSE:
                words.append(NameSpan(start, end, match[0]))
            continue
        if text.startswith(":", end) and (port := _PORT.match(text, end)) and _is_host(match[0]):
            kind, end = "url", port.end()
        elif kind == "word":
            kind = _kind_of_word(match[0])
            if kind == "name":
                if lines.at(start) == PROSE:
                    words.append(NameSpan(start, end, match[0]))
                continue
            if kind is None:
                continue
        if fact := _fact_of_token(kind, text, start, end, lines):
            yield fact
    for name in find_names(text, words):
        kind, normal = kind_of_name(name.text), normalize_name(name.text)
        yield Fact(kind, name.text, normal, name.start, name.end, name.is_significant)


def _is_host(token: str) -> bool:
    """Whether this may stand before a port: a name with dots that is no file, or an address of numbers."""
    return token == "localhost" or ("." in token and token.rpartition(".")[2].lower() not in _EXTENSIONS)


def _kind_of_word(word: str) -> str | None:
    """The kind of a token of letters, digits and joining characters; None for an ordinary word."""
    if word.isalpha():
        return "identifier" if _CAMEL.search(word) else "name" if word[0].isupper() else None
    if "." in word:
        parts = word.split(".")
        if parts[-1].lower() in _EXTENSIONS and len(word) > 3:
            return "path"
        if parts[-1].lower() in _DOMAINS and len(parts[-2]) > 2:
            return "url"
        # a full stop without a space behind it
        is_sentence_end = len(parts) == 2 and parts[0].isalpha() and (parts[1][:1].isupper() or parts[1].isdigit())
        if max(map(len, parts)) < 3 or is_sentence_end:
            return None
    if "_" in word or "::" in word or word.endswith("()") or word.startswith("$") or "." in word:
        return "identifier" if _ANY_LETTER.search(word) else None
    if any(char.isdigit() for char in word):
        return None if word[0].isdigit() else "identifier"
    if _CAMEL.search(word) and "'" not in word and "’" not in word and "-" not in word:
        return "identifier"
    return "name" if word[0].isupper() else None


def _fact_of_token(kind: str, text: str, start: int, end: int, lines: LineKinds) -> Fact | None:
    token, line_kind = text[start:end], lines.at(start)
    is_prose = line_kind == PROSE
    match kind:
        case "number":
            return _number(text, start, end, line_kind)
        case "date":
            return Fact("date", token, normalize_date(token), start, end, is_prose)
        case "time":
            return Fact("time", token, normalize_time(token), start, end, is_prose)
        case "version":
            return Fact("version", token, token.lower().lstrip("v"), start, end)
        case "groups":
            return Fact("identifier", token, normalize_fact_text(token), start, end, is_prose)
        case "hash" | "flag" | "ticket" | "identifier":
            # identifiers and hexadecimal numbers are significant only where people mention them
            return Fact("identifier", token, token.lower(), start, end, is_prose and len(token) > 2)
        case "katakana":
            return Fact("name", token, token, start, end, is_prose)
        case "path":
            return _path(text, start, end, lines)
        case _:
            url = token.rstrip(".,:;!?'")
            return Fact("url", url, url.lower().rstrip("/"), start, start + len(url))


def _number(text: str, start: int, end: int, line_kind: str) -> Fact | None:
    with_unit = unit_end(text, end)
    if with_unit is None:
        return None
    written = text[start:with_unit]
    is_significant = _is_significant_number(text, start, with_unit, line_kind)
    word = _NEXT_WORD.match(text, end) if with_unit == end else None
    counts = word[1].lower() if word else ""
    return Fact("number", written, normalize_number(written), start, with_unit, is_significant, counts)


def _is_significant_number(text: str, start: int, end: int, line_kind: str) -> bool:
    """A single digit needs the noun that it counts; single numbers in a table, and list numbers, say nothing."""
    written = text[start:end]
    is_bare = written.isdigit()
    if is_bare and _NUMBERING.match(text, end):
        line_start = text[max(0, start - 8) : start].rpartition("\n")[2]
        if not line_start.strip(" \t-*>#"):
            return False
    if len(written) > 15 or (
        is_bare and len(written) == 1 and (written in "012" or not _COUNTED_NOUN.match(text, end))
    ):
        return False
    if line_kind == ROW:
        return False
    return line_kind in (PROSE, OUTCOME) or _ANY_LETTER.search(written) is not None or written.endswith("%")


def _path(text: str, start: int, end: int, lines: LineKinds) -> Fact | None:
    """A token with a slash is a path by its start, by its extension, or by its length; "and/or" is none."""
    path = text[start:end].rstrip(".,:-")
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if not parts or not _ANY_LETTER.search(path) or text[start - 1 : start] == "<":
        return None
    if path[0] == "." and "/" not in path and not _DOT_FILE.match(path):
        return None
    is_rooted = path[0] in "/~." or "\\" in path
    extension = parts[-1].rpartition(".")[2].lower()
    is_file = "." in parts[-1] and extension in _EXTENSIONS
    is_long = len(parts) > 2 and all(len(part) > 1 and not part.isdigit() for part in parts)
    if not (is_file or is_long or (is_rooted and len(path) > 2)):
        return None
    end = start + len(path)
    if line := _LINE_NUMBER.match(text, end):
        path, end = path + line[0], line.end()
    is_significant = "/" in path or lines.at(start) != ROW
    return Fact("path", path, path.lower().removeprefix("./").rstrip("/") or "/", start, end, is_significant)


def _quotations(text: str, lines: LineKinds) -> Iterator[Fact]:
    # a search for single characters is much faster than the pattern, and most texts have none of them
    for match in _QUOTE.finditer(text) if any(mark in text for mark in _OPENING_QUOTES) else ():
        inner = match[0][1:-1].strip()
        if len(inner) > 1 and _ANY_LETTER.search(inner) and lines.at(match.start()) == PROSE:
            is_significant = len(inner.split()) > 1 or inner[0].isupper() or not inner.isascii()
            yield Fact("quote", match[0], normalize_fact_text(inner), match.start(), match.end(), is_significant)


def _commands(text: str, lines: LineKinds) -> Iterator[Fact]:
    for match in _CODE_SPAN.finditer(text) if "`" in text else ():
        inner = match[1].strip()
        if _COMMAND.match(inner) and " " in inner:
            yield Fact("command", inner, normalize_fact_text(inner), match.start(), match.end())
        elif inner and _ANY_LETTER.search(inner) and not lines.fence_at(match.start()):
            yield Fact("identifier", inner, normalize_fact_text(inner), match.start(), match.end())
    for match in _COMMAND_LINE.finditer(text) if any(mark in text for mark in _PROMPTS) else ():
        yield Fact("command", match[1].strip(), normalize_fact_text(match[1]), match.start(1), match.end(1))
    for match in _COMMAND_ARGUMENT.finditer(text) if ": " in text else ():
        if lines.at(match.start()) != PROSE:
            yield Fact("command", match[1].strip(), normalize_fact_text(match[1]), match.start(1), match.end(1))
    for start, end in lines.fences:
        yield from _fenced_commands(text, start, end)


def is_command(line: str) -> bool:
    """Whether a line starts as commands do, and has an argument."""
    return len(line) < _MAX_LENGTH and " " in line and _COMMAND.match(line) is not None


def is_fenced_command(line: str, text: str) -> bool:
    """Whether a line of a text is a command between fences."""
    return is_command(line) and (f"\n{line}\n```" in text or f"```\n{line}\n" in text or f"sh\n{line}\n" in text)


def _fenced_commands(text: str, start: int, end: int) -> Iterator[Fact]:
    """Lines between fences that start as commands do."""
    offset = start
    for line in text[start:end].splitlines(keepends=True)[:_MAX_FENCED_LINES]:
        command = line.strip()
        if is_command(command):
            at = offset + line.index(command)
            yield Fact("command", command, normalize_fact_text(command), at, at + len(command))
        offset += len(line)


def _errors(text: str) -> Iterator[Fact]:
    for match in _ERROR.finditer(text) if any(f"{word}:" in text for word in _ERROR_WORDS) else ():
        yield Fact("error", match[0].strip(), normalize_fact_text(match[0]), match.start(1), match.end())


# A name that starts a sentence may be any noun.
_COUNTS_OF_SOMEBODY = re.compile(
    r"[A-ZÄÖÜÉ][^\W\d_]+ (?:has|had|got|hat|hatte|tiene|ya tiene|a|a déjà) (?:[^\W\d_]+ )?\d{1,2} [^\W\d_]"
)

# What the speaker and others have, need or do is no remark about somebody.
_OF_US = re.compile(r"\b(?:we|our|wir|unser\w*|nous|notre|nos|nosotros|nuestr\w+)\b", re.IGNORECASE)


# Values that are no small count.
_LARGE = re.compile(r"\d{3}|\d[.,:/-]\d|[€$£%`@/_]")


@text_cache(8192)
def is_passing(text: str) -> bool:
    """Whether a sentence has only first names and small counts, as "Mei got 9 replies": told of one after the other,
    the latest is enough."""
    if _LARGE.search(text) or _OF_US.search(text):
        return False
    found = [fact for fact in find_facts(text, author=PROSE) if fact.is_significant]
    if _COUNTS_OF_SOMEBODY.match(text) and len(found) == 1 and found[0].kind == "number":
        return True
    small = [fact for fact in found if fact.kind == "number" and fact.text.isdigit() and len(fact.text) <= _MAX_SMALL]
    first_names = [fact for fact in found if fact.kind == "name" and " " not in fact.text]
    return bool(first_names) and len(small) + len(first_names) == len(found)


def normalize_fact_text(text: str) -> str:
    """In lower case, with single spaces."""
    return " ".join([" ".join(part.lower().split()) for part in pieces_of(text, _PIECE_LENGTH)])
