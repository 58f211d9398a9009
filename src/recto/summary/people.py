"""People: sentences that tell who somebody is, by name and role: "her paediatrician is Dr. Lund". Knows one "
"sentence."""

import re

from recto.chat.cues import words_of
from recto.summary.sentences import word_set
from recto.text import text_cache

_CAPITAL = "[A-ZÄÖÜÉŁŚŻ]"
_OWNERS = word_set(
    "my our her his their the your mein meine meiner unser unsere ihr ihre sein seine der die das mi nuestro "
    "nuestra el "
    "la mon ma notre le mijn onze ons de het il lo mio mia nostro nostra o a meu minha nosso nossa mój moja nasz nasza"
)
_OWNER = f"(?:{'|'.join(sorted(_OWNERS))})"
_IS = (
    r"(?:is|are|was|will be|ist|wird|heißt|es|será|se llama|est|sera|s['’]appelle|wordt|heet|è|sarà|si chiama|é"
    r"|chama-se|jest|będzie|nazywa się)"
)
# "… is called Femke": of what, the words before it tell.
_IS_NAMED = re.compile(rf"\b{_IS} (?:called |now |an? |the )?(?:[a-z]+ )?(?={_CAPITAL}[^\W\d_])")
_NAMED_IS = re.compile(rf"{_CAPITAL}[^\W\d_]+,? {_IS} (?:now |jetzt )?{_OWNER}\b")
_APPOSED = re.compile(rf"{_CAPITAL}[^\W\d_]+ {_CAPITAL}[^\W\d_]+,? {_OWNER} [^\W\d_]{{4}}")
_HEADED = re.compile(rf"[^\W\d_][\w -]{{2,24}}: {_CAPITAL}[^\W\d_]+ {_CAPITAL}")
_TITLED = re.compile(
    r"\b(?:Dr|Prof|Mr|Mrs|Ms|Frau|Herrn?|Sra?|Mme|[Mm]evrouw|[Mm]eneer|[Ss]ignora?|[Pp]an[ią]?|[Dd]ott\w*|[Dd]octora?"
    rf"|[Mm]aître)\.? {_CAPITAL}\w|[\u3400-\u9fff]{{1,4}}さん"
)
# Looked for first, since most sentences have none.
_MAY_NAME = re.compile(rf"{_CAPITAL}(?<=[^.!?] {_CAPITAL})[^\W\d_]|さ(?=ん)")
_FIRST_NAME = re.compile(rf"{_CAPITAL}[^\W\d_]+ (?:is|ist|es|est|è|é|jest) ")
_MAX_SENTENCE = 140


@text_cache(8192)  # asked for the promise of a sentence, and for its score
def names_role(text: str) -> bool:
    """Whether it says who somebody is, or names a person with a title."""
    if len(text) > _MAX_SENTENCE or text.endswith(("?", "？")):
        return False
    if not (_MAY_NAME.search(text) or _FIRST_NAME.match(text)):
        return False
    if _TITLED.search(text) or _NAMED_IS.search(text) or _APPOSED.search(text) or _HEADED.match(text):
        return True
    named = _IS_NAMED.search(text)
    return named is not None and not _OWNERS.isdisjoint(words_of(text[: named.start()]))
