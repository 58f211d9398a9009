"""The log: destination, level, and removal of secrets. Also the crash file.

Imported only when a log is wanted or something failed: `logging` takes time to import.
"""

import logging
import os
import re
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from recto import __version__
from recto.base.home_files import CRASH_FILE, create_private_file, make_private_folder, private
from recto.base.locations import find_home
from recto.base.text import without_key
from recto.cli.show import visible
from recto.errors import Invalid, RectoError
from recto.settings.keys import READ

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
HINT = "RECTO_LOG=debug recto --log FILE COMMAND logs what led to it"
REDACTED = "[redacted]"

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRETS = re.compile(
    r"""(?P<before>\bBearer\s+
        |\b(?:x-)?api[-_]?key["']?\s*[:=]\s*["']?
        |\bauthorization["']?\s*[:=]\s*["']?(?:\w+\s+)?
        |\bpassword["']?\s*[:=]\s*["']?
        |[?&]key=
        |(?-i:\b(?>[A-Z0-9_]*?(?:KEY|TOKEN|SECRET|PASSWORD))[A-Z0-9_]*+=)
        |://[^\s/:@]*:(?=[^\s/@]+@)
        |(?=\b(?:sk|pk|rk|gsk|xai|ghp|gho|hf|xox[abp])[-_][\w-]{8})
        |(?=\bAIza[\w-]{20})
        )(?P<secret>[^\s"',;&<>)}\]@]+)""",
    re.IGNORECASE | re.VERBOSE,
)

log = logging.getLogger(__name__)
_root = logging.getLogger("recto")
# without a handler Python prints warnings to stderr
_root.addHandler(logging.NullHandler())


class RedactingFormatter(logging.Formatter):
    """Removes secrets and control characters from whole lines: messages, arguments, tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(redact(super().format(record)))


def redact(text: str) -> str:
    """The text without API keys: from the environment, stored, or anything that looks like one."""
    values = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    # the longest first: one key may begin with another
    for secret in sorted(values | READ, key=len, reverse=True):
        text = without_key(text, secret, REDACTED)
    return _SECRETS.sub(lambda found: found["before"] + REDACTED, text)


def set_up(level: str | None, file: str | None, command: str) -> None:
    """Log to a file or stderr. Invalid for an unknown level or an unwritable file."""
    number = LEVELS.get((level or "info").strip().lower())
    if number is None:
        raise Invalid(f"RECTO_LOG takes {', '.join(LEVELS)}, not {level}", value=level)
    handler = _open_file(Path(file).expanduser()) if file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(FORMAT))
    close()
    _root.addHandler(handler)
    _root.setLevel(number)
    log.info("recto %s: %s", __version__, command)


def close() -> None:
    """Close the log, if there is one."""
    for handler in _root.handlers[:]:
        if isinstance(handler.formatter, RedactingFormatter):
            _root.removeHandler(handler)
            handler.close()
    _root.setLevel(logging.NOTSET)


def _open_file(path: Path) -> logging.Handler:
    try:
        # at debug level the log holds messages: only the user may read it
        create_private_file(path)
        return logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as why:
        raise Invalid(f"the log cannot be written to {path}: {why.strerror or why}", file=str(path)) from why


def log_failure(why: RectoError) -> str:
    """Log an error, and return its sentence. Above debug level only its type is logged: the sentence may quote a
    message."""
    log.error("failed: %s", why.type)
    log.debug("%s", why.message, exc_info=why)
    return why.message


def log_bug(why: BaseException) -> str:
    """Log an unexpected exception, add its traceback to the crash file, and return one sentence for the user."""
    log.error("unexpected %s", type(why).__name__, exc_info=why)
    path = find_home() / CRASH_FILE
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        make_private_folder(path.parent)
        with open(path, "a", encoding="utf-8", errors="backslashreplace", opener=private) as kept:
            kept.write(redact(f"{stamp} recto {__version__}\n{''.join(traceback.format_exception(why))}\n"))
        place = f"; its traceback is in {path}"
    except OSError:  # an unwritable home must not hide the error
        place = f" ({redact(str(why))})"
    return f"{type(why).__name__}: this is a bug in Recto{place} ({HINT})"
