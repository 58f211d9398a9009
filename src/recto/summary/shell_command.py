"""Shell commands: what they are instances of, and which files they read and change, by their words alone."""

import re
import shlex
from itertools import pairwise

from msgspec import Struct

from recto.summary.sentences import word_set

_TRIVIAL = word_set("cd export source . set echo printf sleep true pwd pushd popd unset clear alias exit which mkdir")
_LOOKING = word_set(
    "ls cat head tail grep rg find sed awk wc file stat tree nl less more du df ps env type diff cd echo pwd which "
    "sort uniq cut tr jq column dir findstr Get-Content Get-ChildItem Select-String Select-Object Get-Item Test-Path"
)
_LOOKING_VERBS = ("git status", "git diff", "git log", "git show", "git branch", "git blame", "git ls-files")
_EDITING = word_set("tee patch apply_patch cp mv touch Set-Content Add-Content Out-File") | {
    "sed -i",
    "perl -i",
    "git apply",
}
_LOOKING_NAME = re.compile(r"(?:find|search|list|show|view|read|open|goto|scroll)_\w+|open|view|goto|scroll\w*")
_PREFIXES = word_set("sudo time nohup command exec xargs env nice stdbuf")
_SHELLS = word_set("bash sh zsh dash powershell pwsh powershell.exe cmd cmd.exe")
_SHELL_FLAG = re.compile(r"-[a-z]*c|-Command|/[cC]")
_INTERPRETERS = word_set("python python3 py node bash sh zsh ruby perl php deno bun java Rscript")
_WITH_VERB = word_set(
    "git npm yarn pnpm cargo go docker docker-compose kubectl make pip pip3 apt apt-get brew gh terraform dotnet mvn "
    "gradle ./gradlew bazel systemctl uv poetry conda helm aws gcloud az just tox nox rake composer mix swift"
)
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("bundle", "exec"), ("npx", ""), ("conda", "run")}
_SEPARATORS = ("&&", "||", ";", "|", "&", ";;", "|&")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?(?:\n\s*\1[ \t]*(?=\n|$)|\Z)", re.DOTALL)
_FROM_FOLDER = re.compile(r"^cd (?:/|[A-Za-z]:\\)\S+ && (?=\S)")
_ASSIGNMENT = re.compile(r"\w+=")
_WINDOWS = re.compile(r"\b[A-Za-z]:\\|(?<![\w'\"/])\.{1,2}\\\w|\w\\[\w\\]+\.\w{1,6}\b")
_TO_DESCRIPTOR = re.compile(r"\d?>&\d\b|&(?=>)")
_REDIRECTION = re.compile(r"(?:\d|&)?>>?\|?(.*)")
_PATH = re.compile(r"(?!-)(?!\w+://)[^\s'\"$*?{}()<>|;]*(?:/[^\s'\"$*?{}()<>|;]+|\w\.\w{1,8})")
_NO_FILE = re.compile(r"\.?[\d.]+|\w+\.\w+\(.*")
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?)([^\s].*?)\s*$", re.MULTILINE
)

# Programs in a command that write files, as `open(path, "w")`; the path may be a name that got it before.
_LITERAL = r"""['"]([^'"\n]{1,200})['"]"""
_WRITES = r"""\s*,\s*(?:mode\s*=\s*)?['"](?:[wax]|r\+)"""
_CODE_WRITES = re.compile(
    rf"""open\(\s*{_LITERAL}(?:{_WRITES})|Path\(\s*{_LITERAL}\s*\)\.write_|write(?:_?[Ff]ile)(?:Sync)?\(\s*{_LITERAL}"""
    rf"""|File\.write\(?\s*{_LITERAL}"""
)
_CODE_WRITES_NAME = re.compile(
    rf"""open\(\s*(\w+)(?:{_WRITES})|\b(\w+)\.(?:write_(?:text|bytes)|open\(\s*['"][wax])|write(?:_?[Ff]ile)(?:Sync)?\(\s*(\w+)\s*,"""
)
_CODE_NAMES = re.compile(
    rf"""^\s*(?:const |let |var )?(\w+)\s*=\s*(?:[\w.]*Path\(\s*)?{_LITERAL}"""
    r"""|\bfor\s+(\w+)\s+in\s+[\[(]([^\])]*)[\])]""",
    re.MULTILINE,
)


class ShellFiles(Struct, frozen=True):
    read: tuple[str, ...]
    changed: tuple[str, ...]


def unwrap(command: str | list[str]) -> str:
    """The command that a shell is told to run: `bash -lc "make test"`."""
    words = list(command) if isinstance(command, list) else _words(command) if _is_wrapped(command) else []
    if len(words) > 2 and words[0].rsplit("/", 1)[-1] in _SHELLS and _SHELL_FLAG.fullmatch(words[-2]):
        return words[-1].strip()
    if words[1:] and words[0] == "apply_patch":
        return f"apply_patch <<PATCH\n{words[1]}\nPATCH"
    return " ".join(command) if isinstance(command, list) else command


def _is_wrapped(command: str) -> bool:
    first = command.split(None, 1)[:1]
    return bool(first) and first[0].rsplit("/", 1)[-1] in _SHELLS


def shorten_command(command: str) -> str:
    """On one line, without what a heredoc holds, and without the way to the project."""
    return _FROM_FOLDER.sub("", " ".join(_HEREDOC.sub(r"<<\1\2", command).split()))


def split_commands(command: str) -> list[list[str]]:
    """The words of each command in a line."""
    command = _TO_DESCRIPTOR.sub(" ", _HEREDOC.sub(r"<<\1\2", command).replace("\\\n", " "))
    lines = [line for line in command.split("\n") if not line.lstrip().startswith("#")]
    is_plain = all(line.count("'") % 2 == 0 and line.count('"') % 2 == 0 for line in lines)
    found: list[list[str]] = [[]]
    for word in _words((" ; " if is_plain else " ").join(lines)):
        if word in _SEPARATORS:
            found.append([])
            continue
        found[-1].append(word)
    return [words for words in found if words]


def _words(command: str) -> list[str]:
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        if _WINDOWS.search(command):
            lexer.escape = ""
        return list(lexer)
    except ValueError:
        return command.split()


def command_families(parts: list[list[str]]) -> frozenset[str]:
    """Of a line of commands; what only looks, as the end of a pipe, counts where nothing else is run."""
    found = frozenset(family for words in parts if (family := command_family(words)))
    return frozenset(family for family in found if not is_looking_family(family)) or found


def is_looking_family(family: str) -> bool:
    """Whether it only looks around."""
    return family in _LOOKING or family in _LOOKING_VERBS or _LOOKING_NAME.fullmatch(family) is not None


def is_editing_family(family: str) -> bool:
    """Whether it only changes files."""
    return family in _EDITING


def command_family(words: list[str]) -> str:
    """`pytest`, `git commit`, `npm test`, `python setup.py`: what is run, without how; empty for `cd` and the like."""
    words = [words[0].lstrip("("), *words[1:]] if words else []
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or words[0] == "timeout"):
        words = words[2:] if words[0] == "timeout" else words[1:]
    if not words or words[0] in _TRIVIAL or words[0].startswith(("<<", ">", "2>", "#")):
        return ""
    first, *rest = words
    verbs = [word for word in rest if not word.startswith(("-", ">", "<", "2>"))]
    if first in ("sed", "perl") and any(_is_in_place(word) for word in rest):
        return f"{first} -i"
    if first in _INTERPRETERS:
        if "-m" in rest[:-1]:
            return rest[rest.index("-m") + 1]
        return f"{first} {verbs[0]}" if verbs and "-c" not in rest else first
    if any(first == runner and (not verb or rest[:1] == [verb]) for runner, verb in _RUNNERS):
        return command_family(verbs[1:] if first != "npx" else verbs)
    if first == "git" and rest[:1] == ["-C"]:
        verbs = verbs[1:]
    name = re.split(r"[/\\]", first)[-1] if first.startswith("/") or ":\\" in first else first
    if name in ("npm", "yarn", "pnpm") and verbs[:1] == ["run"]:
        verbs = verbs[1:]
    return f"{name} {verbs[0]}" if name in _WITH_VERB and verbs else name


def _is_in_place(word: str) -> bool:
    return re.match(r"-[a-zA-Z]*i|--in-place", word) is not None and not word.startswith("--i-")


def command_files(command: str, parts: list[list[str]]) -> ShellFiles:
    """The files that a line of commands reads, and those that it changes."""
    read: list[str] = []
    changed = [*files_written_by_code(command), *patched_files(command)]
    for words in parts:
        some_read, some_changed = _files_of(words)
        read += some_read
        changed += some_changed
    changed = [path for path in dict.fromkeys(changed) if not path.startswith(("/dev/", "&"))]
    return ShellFiles(tuple(read), tuple(changed))


def patched_files(text: str) -> tuple[str, ...]:
    """The files of a diff."""
    return tuple(path for path in dict.fromkeys(_PATCHED.findall(text)) if path != "/dev/null")


def files_written_by_code(code: str) -> tuple[str, ...]:
    """Files that a program writes, where it names them."""
    written = [path for found in _CODE_WRITES.findall(code) for path in found if path]
    names = {name for found in _CODE_WRITES_NAME.findall(code) for name in found if name}
    for name, path, each, listed in _CODE_NAMES.findall(code) if names else ():
        if name in names:
            written.append(path)
        elif each in names:
            written += re.findall(_LITERAL, listed)
    return tuple(dict.fromkeys(written))


def is_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None and _NO_FILE.fullmatch(text) is None


def _files_of(words: list[str]) -> tuple[list[str], list[str]]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or words[0] == "npx"):
        words = words[1:]
    if not words:
        return [], []
    words, changed = _without_redirections(words)
    name, given = words[0] if words else "", [word for word in words[1:] if not word.startswith("-")]
    paths = [word for word in given if is_path(word)]
    match name, given[:1]:
        case ("sed" | "perl", _) if any(map(_is_in_place, words[1:])):
            changed += _edited_in_place(words[1:])
        case ("rm" | "touch" | "tee" | "mv" | "truncate" | "Move-Item" | "Remove-Item" | "del" | "ren" | "move", _):
            changed += paths
        case ("git", ["rm" | "mv" | "restore"]):
            changed += paths
        case ("git", ["checkout"]) if "--" in words:
            changed += [word for word in words[words.index("--") + 1 :] if is_path(word)]
        case ("cp" | "install" | "Copy-Item" | "copy", _):
            changed += paths[-1:]
        case ("Set-Content" | "Add-Content" | "Out-File" | "New-Item", _):
            changed += paths[:1]
        case ("curl" | "wget", _):
            changed += [after for flag, after in pairwise(words) if flag in ("-o", "-O", "--output")]
        case ("black" | "isort" | "rustfmt" | "gofmt" | "prettier", _) if _formats(name, words):
            changed += paths
        case ("cat" | "head" | "tail" | "less" | "more" | "nl" | "bat" | "open" | "view" | "type" | "Get-Content", _):
            return paths, changed
        case ("sed", _):
            return [path for path in given[1:] if is_path(path)], changed
        case ("create" | "edit" | "write", _):
            changed += paths[:1]
    return [], changed


def _formats(name: str, words: list[str]) -> bool:
    if name in ("gofmt", "prettier"):
        return "-w" in words or "--write" in words
    return not any(word.startswith(("--check", "--diff")) for word in words)


def _without_redirections(words: list[str]) -> tuple[list[str], list[str]]:
    """The other words, and the files that output goes to."""
    kept: list[str] = []
    files: list[str] = []
    is_target = False
    for word in words:
        found = None if is_target else _REDIRECTION.fullmatch(word)
        if is_target or (found and found[1]):
            files += [found[1] if found else word]
            is_target = False
        elif found:
            is_target = True
        else:
            kept.append(word)
    return kept, [path for path in files if not path.startswith("&")]


def _edited_in_place(words: list[str]) -> list[str]:
    """The files behind the script of `sed -i`, or behind all of them."""
    has_script, files, skips = False, list[str](), False
    for word in words:
        if skips:
            skips = False
        elif word in ("-e", "-f", "--expression", "--file") or (word.startswith("-") and word.endswith("e")):
            has_script = skips = True
        elif word and not word.startswith("-"):
            files += [word] if has_script else []
            has_script = True
    return [path for path in files if not set(path) & set("$*?{}()<>|;")]
