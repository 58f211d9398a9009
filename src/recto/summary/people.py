"""People: sentences that tell who somebody is, by name and role: "her paediatrician is Dr. Lund". Knows one "
"sentence."""

import re

from recto.text import LazyPattern, text_cache

_NAME = r"(?-i:(?:Dr|Prof|Mr|Mrs|Ms|Frau|Herr|Sra?|Mme|M)?\.? ?[A-ZÄÖÜÉŁŚŻ][^\W\d_]+)"
_OWNER = (
    r"(?:my|our|her|his|their|the|your|mein\w*|unser\w*|ihre?\w?|sein\w*|der|die|das|mi|nuestr[oa]|el|la|mon|ma"
    r"|notre|le"
    r"|mijn|onze?|de|het|il|lo|mio|mia|nostr[oa]|o|a|meu|minha|nosso|nossa|mój|moja|nasz[ay]?)"
)
_IS = (
    r"(?:is|are|was|will be|is called|is now|ist|wird|heißt|es|será|se llama|est|sera|s['’]appelle|wordt|heet|è|sarà"
    r"|si chiama|é|chama-se|jest|będzie|nazywa się|to)"
)
_ROLE = LazyPattern(
    rf"(?i)\b{_OWNER} (?:[^\W\d_][\w-]* ){{1,4}}{_IS} (?:called |an? |the )?{_NAME}"
    rf"|(?-i:^|[,;:.] |\b(?:and|und|y|et|en|e|i) ){_NAME}(?: {_NAME})?,? {_IS} (?:now |jetzt )?{_OWNER}\b"
    rf"|{_NAME} {_NAME},? {_OWNER} [^\W\d_]{{4}}"
    rf"|^[^\W\d_][\w -]{{2,24}}: {_NAME} {_NAME}"
    rf"|\b[^\W\d_]+(?:em|ą|ką) (?:[^\W\d_]+ )?jest {_NAME}"
)
_TITLED = re.compile(
    r"\b(?:Dr|Prof|Mr|Mrs|Ms|Frau|Herrn?|Sra?|Mme|[Mm]evrouw|[Mm]eneer|[Ss]ignora?|[Pp]an[ią]?"
    r"|[Dd]ott\w*|[Dd]octora?|[Mm]aître)\.? [A-ZÄÖÜÉŁŚŻ]\w"
    r"|[\u3400-\u9fff]{1,4}さん"
)
_CAPITAL = re.compile(r"[A-ZÄÖÜÉŁŚŻ]|さん")
_MAX_SENTENCE = 140


@text_cache(8192)  # asked for the promise of a sentence, and for its score
def names_role(text: str) -> bool:
    """Whether it says who somebody is, or names a person with a title."""
    if len(text) > _MAX_SENTENCE or text.endswith(("?", "？")) or not _CAPITAL.search(text, 1):
        return False
    return _TITLED.search(text) is not None or _ROLE.search(text) is not None
