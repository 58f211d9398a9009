"""Facts: what of a text can be checked against another: figures, dates, names, paths, addresses, commands, identifiers,
quotations, errors. Pure; reads any text in linear time and knows no message.

Of what a machine wrote (tool output, code, logs) only that counts which a reader would call a fact: paths, addresses,
versions, measures, commands, errors, and in lines that tell an outcome the figures too. The rest is found, as proof
that it was said, but does not count.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recto.summary import figures, names
from recto.summary.figures import LETTER, word_set
from recto.summary.layout import OUTCOME, PROSE, ROW, Layout, layout

LONGEST = 160
"""Characters of a token or quotation beyond which it is no fact."""


@dataclass(frozen=True, slots=True)
class Fact:
    kind: str
    """decision, date, time, number, version, path, url, command, identifier, name, quote or error."""
    text: str
    """As written."""
    normal: str
    """The same for every spelling."""
    start: int = 0
    end: int = 0
    counts: bool = True
    """Whether a reader would call it a fact. What does not count still proves that something was said."""

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
_PATTERNS = {
    "plain": rf"[a-z]++(?![{LETTER}(]|[.:/@\\-][{LETTER}/\\])",
    "url": r"""(?:https?|ftp|ssh|git|s3|file|wss?|postgres(?:ql)?|mysql|redis|mongodb)://[^\s"'<>()\[\]{}`|\\^,;]++"""
    rf"|[{LETTER}.+-]{{1,64}}+@[{LETTER}-]{{1,63}}+(?:\.[{LETTER}-]{{2,63}}+)++",
    "date": rf"(?=[\dA-Z])(?:{figures.DATE})",
    "time": rf"(?=\d)(?:{figures.TIME})",
    "path": rf"(?:~|\.{{1,2}})?/[{LETTER}.@-]++(?:/[{LETTER}.@-]++)*+/?+|[A-Za-z]:\\[{LETTER}.\\-]++"
    rf"|(?![\d/.,]++(?![A-Za-z_]))[{LETTER}.@-]++(?:/[{LETTER}.@-]++)++/?+|\.[a-z][{LETTER}-]*+(?:\.[{LETTER}-]++)*+",
    "version": rf"[vV]\d++(?:\.\d++)*+(?:-?[a-z]++\.?\d*+)?(?![{LETTER}])"
    rf"|\d++\.\d++\.\d++(?:\.\d++)*+(?:[-+.]?(?:rc|a|b|alpha|beta|dev|post)[\w.]*+)?(?![{LETTER}])",
    "hash": rf"(?=\d*+[a-f])(?=[a-f]*+\d)[a-f\d]{{7,64}}+(?:-[a-f\d]{{4,12}}+)*+(?![{LETTER}])"
    rf"|0x[\da-fA-F]++(?![{LETTER}])",
    "number": rf"(?=[\d$€£¥₹+−UEGC-])(?:{figures.NUMBER})",
    "flag": rf"--?[a-z][{LETTER}-]++",
    "ticket": rf"[A-Z][A-Z\d]{{1,9}}+-\d++(?![{LETTER}])|\#\d++(?![{LETTER}])",
    "word": rf"\$?[{LETTER}]++(?:['’][a-zA-Z]++)?(?:(?:[._-]|::)[{LETTER}]++)*+(?:\(\))?",
    "katakana": r"[\u30a1-\u30fa\u30fc]{3,}+(?:・[\u30a1-\u30fa\u30fc]++)*+",
}
# what no pattern begins with fails at one look
_FIRST = rf"(?=[{LETTER}$#~./+−€£¥₹\u30a1-\u30fc-])"
_SCAN = re.compile(
    rf"(?<![{LETTER}.@/\\-]){_FIRST}(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items())
    + ")"
)
_QUOTE = re.compile(
    r'"[^"\n]{3,80}+"|“[^”\n]{3,80}+”|„[^“”\n]{3,80}+[“”]|«[^»\n]{3,80}+»|[「『《][^」』》\n]{2,80}+[」』》]'
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{2,120}+)`(?!`)")
_DOT_FILE = re.compile(
    r"\.(?:env|git\w*|bash\w*|zsh\w*|profile|config|local|ssh|cache|npmrc|docker\w*|venv|vscode|pre-commit)"
)
_LINE_NUMBER = re.compile(rf"[:#]L?\d++(?![{LETTER}])")
_COMMAND = re.compile(rf"(?:sudo )?(?:(?:{_COMMANDS})(?:[ \t]++[^\n]{{1,150}}+)?|\./[^\n]{{2,150}}+)$")
_COMMAND_LINE = re.compile(r"^[ \t]*+(?:(?:bash-)?[$❯%]|>>>?)[ \t]++([^\n]{2,160}+)$", re.MULTILINE)
_COMMAND_GIVEN = re.compile(r'"(?:command|cmd)"\s*:\s*"((?:[^"\\\n]|\\.){2,160}+)"')
_ERROR = re.compile(
    r"^[ \t]*+((?:[A-Za-z_.]{0,60}?(?:Error|Exception)|fatal|error)\b):[ \t]*+([^\n]{3,100}+)", re.MULTILINE
)
_CAMEL = re.compile(r"[a-z\u00df-\u00ff\d][A-Z]|[A-Z]{2}[a-z]{2}")
_COUNTED = re.compile(r"[ \xa0](?:[a-z]{3,}s|passed|failed|skipped|people|men|women|children)\b")
_NUMBERING = re.compile(r"[.):](?:\s|$)")
_SAYS = re.compile(r"[^\W\d_]")


def facts(text: str, *, by: str = "") -> list[Fact]:
    """All that can be checked, in order of place, as often as it is written. `by` says who wrote all of it, where that
    is known; else lines are judged by their looks."""
    lines = layout(text, by=by)
    found = [*_scanned(text, lines), *_quoted(text, lines), *_commands(text, lines), *_errors(text)]
    return _apart(sorted(found, key=lambda fact: (fact.start, -fact.end)))


def _apart(found: list[Fact]) -> list[Fact]:
    """Without the figures inside a path and the units of a number, which are their own."""
    kept, end = [], 0
    for fact in found:
        if fact.start < end and fact.kind in ("number", "name", "identifier"):
            continue
        if fact.kind in ("path", "number"):
            end = fact.end
        kept.append(fact)
    return kept


def _scanned(text: str, lines: Layout) -> Iterator[Fact]:
    words: list[names.Word] = []
    for match in _SCAN.finditer(text):
        kind = match.lastgroup
        if kind == "plain" or kind is None:
            continue
        start, end = match.span()
        if end - start > LONGEST:
            continue
        if kind == "word":
            kind = _kind_of_word(match[0])
            if kind == "name":
                if lines.at(start) == PROSE:
                    words.append(names.Word(start, end, match[0]))
                continue
            if kind is None:
                continue
        if fact := _fact(kind, text, start, end, lines):
            yield fact
    for name in names.joined(text, words):
        yield Fact(names.kind_of(name.text), name.text, names.normal(name.text), name.start, name.end, name.counts)


def _kind_of_word(word: str) -> str | None:
    """What a token of letters, digits and joining signs is; None when it is just a word."""
    if word.isalpha():
        return "identifier" if _CAMEL.search(word) else "name" if word[0].isupper() else None
    if "." in word:
        parts = word.split(".")
        if parts[-1].lower() in _EXTENSIONS and len(word) > 3:
            return "path"
        if parts[-1].lower() in _DOMAINS and len(parts[-2]) > 2:
            return "url"
        # a full stop without a space behind it
        is_joint = len(parts) == 2 and parts[0].isalpha() and (parts[1][:1].isupper() or parts[1].isdigit())
        if max(map(len, parts)) < 3 or is_joint:
            return None
    if "_" in word or "::" in word or word.endswith("()") or word.startswith("$") or "." in word:
        return "identifier" if _SAYS.search(word) else None
    if any(sign.isdigit() for sign in word):
        return None if word[0].isdigit() else "identifier"
    if _CAMEL.search(word) and "'" not in word and "’" not in word and "-" not in word:
        return "identifier"
    return "name" if word[0].isupper() else None


def _fact(kind: str, text: str, start: int, end: int, lines: Layout) -> Fact | None:
    written = text[start:end]
    place = lines.at(start)
    match kind:
        case "number":
            unit = figures.unit_end(text, end)
            if unit is None:
                return None
            end, written = unit, text[start:unit]
            return Fact("number", written, figures.number(written), start, end, _number_counts(text, start, end, place))
        case "date":
            return Fact("date", written, figures.date(written), start, end, place == PROSE)
        case "time":
            return Fact("time", written, figures.time(written), start, end, place == PROSE)
        case "version":
            return Fact("version", written, written.lower().lstrip("v"), start, end)
        case "hash" | "flag" | "ticket" | "identifier":
            # of the names in code and the figures in base 16 only those count that people wrote themselves
            return Fact("identifier", written, written.lower(), start, end, place == PROSE and len(written) > 2)
        case "katakana":
            return Fact("name", written, written, start, end, place == PROSE)
        case "path":
            return _path(text, start, end, lines)
        case _:
            stripped = written.rstrip(".,:;!?'")
            return Fact("url", stripped, stripped.lower().rstrip("/"), start, start + len(stripped))


def _number_counts(text: str, start: int, end: int, place: str) -> bool:
    """A figure of one digit tells something only with what it counts; a table tells nothing by its single figures."""
    written = text[start:end]
    is_bare = written.isdigit()
    if (
        is_bare
        and _NUMBERING.match(text, end)
        and not text[max(0, start - 8) : start].rpartition("\n")[2].strip(" \t-*>#")
    ):
        return False
    if len(written) > 15 or (is_bare and len(written) == 1 and (written in "012" or not _COUNTED.match(text, end))):
        return False
    if place == ROW:
        return False
    return place in (PROSE, OUTCOME) or _SAYS.search(written) is not None or written.endswith("%")


def _path(text: str, start: int, end: int, lines: Layout) -> Fact | None:
    """Something with a slash is a path by its beginning, by its ending, or by being long; "and/or" is none."""
    written = text[start:end].rstrip(".,:-")
    parts = [part for part in written.replace("\\", "/").split("/") if part]
    if not parts or not _SAYS.search(written) or text[start - 1 : start] == "<":
        return None
    if written[0] == "." and "/" not in written and not _DOT_FILE.match(written):
        return None
    is_rooted = written[0] in "/~." or "\\" in written
    ending = parts[-1].rpartition(".")[2].lower()
    is_file = "." in parts[-1] and ending in _EXTENSIONS
    is_long = len(parts) > 2 and all(len(part) > 1 and not part.isdigit() for part in parts)
    if not (is_file or is_long or (is_rooted and len(written) > 2)):
        return None
    end = start + len(written)
    if line := _LINE_NUMBER.match(text, end):
        written, end = written + line[0], line.end()
    counts = "/" in written or lines.at(start) != ROW
    return Fact("path", written, written.lower().removeprefix("./").rstrip("/") or "/", start, end, counts)


def _quoted(text: str, lines: Layout) -> Iterator[Fact]:
    for match in _QUOTE.finditer(text):
        inner = match[0][1:-1].strip()
        if len(inner) > 1 and _SAYS.search(inner) and lines.at(match.start()) == PROSE:
            words = inner.split()
            tells = len(words) > 1 or inner[0].isupper() or not inner.isascii()
            yield Fact("quote", match[0], plain(inner), match.start(), match.end(), tells)


def _commands(text: str, lines: Layout) -> Iterator[Fact]:
    for match in _SPAN.finditer(text):
        inner = match[1].strip()
        if _COMMAND.match(inner) and " " in inner:
            yield Fact("command", inner, plain(inner), match.start(), match.end())
        elif inner and _SAYS.search(inner) and not lines.fence_around(match.start()):
            yield Fact("identifier", inner, plain(inner), match.start(), match.end())
    for match in _COMMAND_LINE.finditer(text):
        yield Fact("command", match[1].strip(), plain(match[1]), match.start(1), match.end(1))
    for match in _COMMAND_GIVEN.finditer(text):
        yield Fact("command", match[1], plain(match[1]), match.start(1), match.end(1))
    for start, end in lines.fences:
        yield from _fenced(text, start, end)


def _fenced(text: str, start: int, end: int) -> Iterator[Fact]:
    """Lines between fences that begin as commands do."""
    place = start
    for line in text[start:end].splitlines(keepends=True)[:200]:
        said = line.strip()
        if len(said) < LONGEST and " " in said and _COMMAND.match(said):
            at = place + line.index(said)
            yield Fact("command", said, plain(said), at, at + len(said))
        place += len(line)


def _errors(text: str) -> Iterator[Fact]:
    for match in _ERROR.finditer(text):
        yield Fact("error", match[0].strip(), plain(match[0]), match.start(1), match.end())


def plain(text: str) -> str:
    """In small letters, with single spaces."""
    return " ".join(text.lower().split())
