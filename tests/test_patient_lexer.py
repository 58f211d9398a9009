"""Code with colours, where they do not take too long."""

from collections.abc import Iterator
from time import thread_time
from typing import Any

import pytest
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Keyword, Text

from recto.base import patient_lexer
from recto.base.patient_lexer import MOST_S, PatientLexer


class SlowLexer(Lexer):  # type: ignore[misc]  # untyped
    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[Any, str]]:
        for sign in text:
            end = thread_time() + MOST_S / 4
            while thread_time() < end:
                pass
            yield Keyword, sign


def test_code_has_the_colours_of_its_language() -> None:
    code = "def told():\r\n\treturn 'a'\n"
    assert list(PatientLexer("python").get_tokens(code)) == list(get_lexer_by_name("python").get_tokens(code))


def test_what_takes_too_long_goes_on_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_lexer, "get_lexer_by_name", lambda name, **_: SlowLexer())
    code = "a" * 400
    *coloured, (kind, rest) = PatientLexer("slow").get_tokens(code)
    assert kind is Text
    assert "".join(value for _, value in coloured) + rest == f"{code}\n"
    assert len(coloured) < 10
