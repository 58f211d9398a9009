"""Stances: what a sentence decides for or against: "use Redis instead of Postgres" is for the one, against the other.

Pure; reads one sentence by the cues of four languages and knows nothing of others. What it cannot read it leaves out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

from recto.summary.figures import word_set

_LONGEST = 600
_SELECTS = (
    r"cho(?:se|osing|osen?|sen)|pick(?:ed|s|ing)?|opt(?:ed|ing)? for|settled? (?:on|for)|decided? (?:on|for"
    r"|in favou?r of)|agreed? on|(?:go|goes|going|went|gone) with|end(?:ed)? up (?:with|using)"
    r"|stick(?:ing)? (?:with|to)|stuck with|stay(?:ed|ing)? with|prefer(?:s|red)?|select(?:ed)?|adopt(?:ed|s|ing)?"
    r"|switch(?:ed|ing)? to|mov(?:e|ed|ing) to|migrat(?:e|ed|ing) to|keep(?:s|ing)?|kept|bleiben bei|(?:uns|sich"
    r"|mich) für|on (?:prend|garde|part sur)|(?:nos|se) (?:quedamos|quedan|quedaron) con|vamos con|elegimos"
    r"|optamos por"
)
_USES = (
    r"us(?:e|es|ed|ing)|tak(?:e|es|ing)|took|install(?:ed|s|ing)?|enabl(?:e|ed|es|ing)|add(?:ed|s|ing)?|includ(?:e"
    r"|ed|es|ing)|nehmen|nimmt|verwende[nt]?|nutz(?:en|t)|benutz(?:en|t)|utilis(?:e|er|ons|ent)|prenons|us(?:ar"
    r"|amos|an)|utiliza(?:r|mos|n)"
)
_REFUSES = (
    r"against|avoid(?:s|ed|ing)?|reject(?:s|ed|ing)?|rul(?:e|ed|ing) out|drop(?:s|ped|ping)?|discard(?:s|ed)?"
    r"|abandon(?:s|ed|ing)?|dismiss(?:ed)?|skip(?:s|ped|ping)?|exclud(?:e|ed|ing)|remov(?:e|ed|es|ing)|disabl(?:e"
    r"|ed|ing)|refus(?:e|ed)|declin(?:e|ed)|veto(?:ed)?|stop(?:s|ped)?(?= using)|mov(?:e|ed|ing) away from"
    r"|g[eo]t(?:ting)? rid of|without|gegen|ohne|contre|sans|contra|sin"
)
_CONTRASTS = (
    r"instead of|rather than|in place of|as opposed to|(?:an)?statt|anstelle von|au lieu (?:de|du|d')"
    r"|plutôt que(?: de)?|en (?:vez|lugar) de"
)
_DENIES = r"not|never|neither|nor|no|cannot|\w+n't|nicht|nie|niemals|keine?[nmrs]?|pas|jamais|nunca|jamás"
_DECIDES = (
    r"(?:decid|agre|vot|resolv|promis|advis)\w*|chose|let's|let us|must|shall|should|will|won't|\w+'ll|going to"
    r"|ha(?:ve|s) to|needs? to|want(?:s|ed)?(?: \w+)? to|always|never|do not|don't|mustn't|shouldn't|can't|cannot"
    r"|entschieden|décidé|decidimos"
)
_STOPS = (
    r"but|because|since|so|while|although|though|whereas|which|who|then|aber|weil|sondern|mais|car|parce que|pero"
    r"|porque|sino"
)
_CUE = (
    rf"(?P<stop>[,;:()\[\]|–—]|[.!?](?=\s)|(?<!\w)(?:{_STOPS})(?!\w))"
    rf"|(?<![\w'])(?:(?P<only>not (?:only|just)|nicht nur|pas seulement|no solo)"
    rf"|(?P<contrast>{_CONTRASTS})|(?P<selects>{_SELECTS})|(?P<uses>{_USES})|(?P<refuses>{_REFUSES})"
    rf"|(?P<frame>(?:{_DECIDES})(?: (?:not|never|always|to|be|ever)(?!\w))*+)|(?P<denies>{_DENIES})"
    rf"|(?P<over>over)|(?P<settles>it is(?=\s*(?:[.,;!]|$|then|for))))(?![\w'])"
)
_FIRM = rf"{_DECIDES}|(?:we|they|you|team|wir|on|nous) (?:{_USES})|usamos"
_HEDGES = (
    r"if|whether|unless|might|could|may|maybe|perhaps|consider\w*|would(?! rather| prefer)|wonder\w*|thought|think"
    r"|thinking|wenn|falls|ob|vielleicht|si|peut-être|quizás"
)
_DISLIKES = (
    rf"{_DENIES}|{_REFUSES}|{_CONTRASTS}|over|too|hardly|problem\w*|issues?|fail\w*|hate[sd]?|bad|wors[et]|wrong"
    r"|scrap\w*|forget|unfortunately|zu|trop|demasiado|kaum|leider"
)
_LIKES = (
    rf"{_DECIDES}|{_SELECTS}|{_USES}|it is|likes?|loves?|good|great|fine|best|better|sounds?|yes|yeah|ok|okay|sure"
    r"|works?|happy|needs?|wants?|with|via|on|runs?|built|plan(?:s|ned)?|ja|gut|oui|bien|sí"
)
_CHANGES = (
    r"instead(?! of)|rather(?! than)|actually|after all|no longer|chang(?:e|ed|ing)|switch\w*|replac\w*|revert\w*"
    r"|undo|second thoughts?|scratch that|never mind|reconsider\w*|stattdessen|lieber|doch|en fait|finalement"
    r"|plutôt(?! que)|en realidad|mejor"
)
_UNSPACED_DENIES = re.compile("[不没别無]|ない|ません")
_BEGINS = re.compile(r"(?:\W|please |now |so |just |ok |okay |yes |bitte |decisions? |decided )*", re.IGNORECASE)
_AND = re.compile(r"(?:[,;]|(?<!\w)(?:and|but|und|et|y|e))\s*$", re.IGNORECASE)
_PASSIVE = re.compile(
    r"(?<!\w)(?:was|were|is|are|been|be|being|gets?|got)\W+(?:(?:not|never|finally|\w+ly)\W+)?$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_](?:[\w+#]|[.'’/-](?=\w))*")
_ENDING = re.compile(r"(?:'s|ings?|ed|es|s|e|n)$")

_DETERMINERS = word_set(
    "the a an our my your their its his her any some these those new plain just simply both all either only der die "
    "das den dem ein eine einen le la les un une du de des el los las una with to be for"
)
_POINTS = word_set("it that this them one these those there das es ihn sie ça cela eso lo la")
_ENDS = word_set(
    "for as in on at to from by of with when where how why if after before until till into onto via per than like and "
    "or nor instead anymore again yet here now too either und oder für als im am bei mit von zu auf et ou pour dans "
    "comme sur avec y o para en como con is are was were has have had be been it we they he she i you will would can "
    "could should must that this und entschieden"
)
_EMPTY = _DETERMINERS | _ENDS | _POINTS


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Made when first needed: few commands ever sum up."""
    return re.compile(words if words == _CUE else rf"(?<![\w'])(?:{words})(?![\w'])", re.IGNORECASE)


# For what may support a stance any sign will do.


def denies(text: str) -> bool:
    return _pattern(_DISLIKES).search(text) is not None or _UNSPACED_DENIES.search(text) is not None


def likes(text: str) -> bool:
    return _pattern(_LIKES).search(text) is not None


def chooses(text: str) -> bool:
    return _pattern(f"{_SELECTS}|{_USES}").search(text) is not None


def changes(text: str) -> bool:
    """Whether somebody thinks better of something."""
    return _pattern(_CHANGES).search(text) is not None


@dataclass(frozen=True, slots=True)
class Stance:
    about: frozenset[str]
    """What is chosen or refused, by the stems of its words."""
    is_for: bool
    start: int
    end: int
    topic: frozenset[str] = frozenset()
    """What it is chosen for: `the queue` in "use Redis for the queue"."""
    is_firm: bool = False
    """It is decided, not only said, asked or considered."""

    def refutes(self, other: "Stance") -> bool:
        """Who is against all boats is against red ones; who is against red ones may be for a boat."""
        if self.is_for == other.is_for or not (self.is_firm and other.is_firm):
            return False
        general, special = (other, self) if self.is_for else (self, other)
        return general.about <= special.about and (
            not self.topic or not other.topic or not self.topic.isdisjoint(other.topic)
        )


def stem(word: str) -> str:
    word = word.lower().replace("’", "'")
    return _ENDING.sub("", word) if len(word) > 4 and word[0].isalpha() else word


def content(sentence: str) -> set[str]:
    """The stems of the words that say something."""
    return {stem(word) for word in _WORD.findall(sentence) if word.lower() not in _EMPTY}


def subjects(sentence: str) -> set[str]:
    """The same without the words that decide."""
    return content(_pattern(_CUE).sub(" ", sentence.replace("’", "'")))


@lru_cache(maxsize=4096)
def stances(sentence: str) -> tuple[Stance, ...]:
    """In order of place, firm ones and others; none where a sentence goes on and on."""
    if len(sentence) > _LONGEST:
        return ()
    text = sentence.replace("’", "'")
    cues = list(_pattern(_CUE).finditer(text))
    if not cues:
        return ()
    is_firm = _pattern(_HEDGES).search(text) is None and not text.rstrip("\"')*_ ").endswith(("?", "？"))
    decides = _pattern(_FIRM).search(text) is not None
    read = _Reading(text, cues).read()
    return tuple(replace(stance, is_firm=is_firm and (is_sure or decides)) for stance, is_sure in read)


@dataclass(slots=True)
class _Reading:
    """One sentence, from cue to cue. A denial turns what follows it in its clause."""

    text: str
    cues: list[re.Match[str]]
    clause: int = 0
    is_denied: bool = False
    has_chosen: bool = False

    def read(self) -> Iterator[tuple[Stance, bool]]:
        """Stances, and whether each is firm by its own words."""
        held: list[tuple[Stance, bool]] = []
        for cue, following in pairwise([*self.cues, None]):
            assert cue is not None
            until = following.start() if following else len(self.text)
            held = self._turned(held, cue, until)
            if cue.lastgroup == "stop":
                yield from held
                held, self.clause, self.is_denied = [], cue.end(), False
                self.has_chosen = self.has_chosen and cue[0] not in ".!?"
                continue
            held += self._taken(cue, until, following)
        yield from held

    def _turned(self, held: list[tuple[Stance, bool]], cue: re.Match[str], until: int) -> list[tuple[Stance, bool]]:
        """ "Wir nehmen Redis nicht": a denial at the end of a clause."""
        is_last = cue.lastgroup == "denies" and not self.text[cue.end() : until].strip(" .!")
        if not is_last or cue[0].lower() not in ("nicht", "nie", "pas", "niemals"):
            return held
        return [(replace(stance, is_for=not stance.is_for), is_sure) for stance, is_sure in held]

    def _taken(self, cue: re.Match[str], until: int, following: re.Match[str] | None) -> list[tuple[Stance, bool]]:
        kind, is_first = cue.lastgroup, _BEGINS.fullmatch(self.text, self.clause, cue.start()) is not None
        if kind in ("selects", "uses", "refuses") and _AND.search(self.text, self.clause, cue.start()):
            self.is_denied = False
        match kind:
            case "selects" | "uses":
                self.has_chosen = True
                return self._found(cue, until, not self.is_denied, is_sure=kind == "selects" or is_first)
            case "refuses":
                found = self._found(cue, until, self.is_denied, is_sure=is_first or cue[0][-2:] == "ed")
                self.is_denied = self.is_denied == bool(found)
                return found
            case "contrast":
                found = self._found(cue, until, is_for=False, is_sure=True)
                self.is_denied = not found
                return found
            case "over" if self.has_chosen:
                return self._found(cue, until, is_for=False, is_sure=True)
            case "settles":
                return self._before(cue.start(), is_for=True)
            case "denies":
                return self._denied(cue, until, is_first)
            case "frame":
                return self._framed(cue, until, following)
        return []

    def _denied(self, cue: re.Match[str], until: int, is_first: bool) -> list[tuple[Stance, bool]]:
        """ "…, not Redis"; "no Redis"."""
        is_contrast = self.has_chosen and (is_first or _AND.search(self.text[: cue.start()]) is not None)
        self.is_denied = not self.is_denied
        is_none = cue[0].lower().startswith(("no", "kein")) and cue[0].lower() not in ("not", "nor")
        if not (is_contrast or is_none):
            return []
        return self._found(cue, until, is_for=False, is_sure=is_contrast or is_first)

    def _framed(self, cue: re.Match[str], until: int, following: re.Match[str] | None) -> list[tuple[Stance, bool]]:
        """ "decided not to deploy on Fridays": a verb of any kind, and what it is about."""
        if _pattern(_DENIES).search(cue[0]):
            self.is_denied = not self.is_denied
        words = list(self._words(cue.end(), until))
        if len(words) < 2 or (following and following.lastgroup == "denies"):
            return []
        about = frozenset(stem(word[0]) for word in words)
        return [(Stance(about, not self.is_denied, words[0].start(), words[-1].end()), True)]

    def _found(self, cue: re.Match[str], until: int, is_for: bool, is_sure: bool) -> list[tuple[Stance, bool]]:
        """What is named behind a cue, or before it where that is told of it: "Redis was rejected"."""
        passive = _PASSIVE.search(self.text, self.clause, cue.start())
        if passive and cue.lastgroup != "contrast":
            return self._before(passive.start(), is_for, is_sure=cue.lastgroup != "uses")
        words = self._object(cue.end(), until)
        if not words:
            return []
        rest = frozenset(stem(word[0]) for word in self._words(words[-1].end(), until))
        return [(_stance(words, is_for, rest), is_sure)]

    def _before(self, end: int, is_for: bool, is_sure: bool = True) -> list[tuple[Stance, bool]]:
        words = list(self._words(self.clause, end))[-2:]
        return [(_stance(words, is_for), is_sure)] if words else []

    def _words(self, start: int, end: int) -> Iterator[re.Match[str]]:
        return (word for word in _WORD.finditer(self.text, start, end) if word[0].lower() not in _EMPTY)

    def _object(self, start: int, end: int) -> list[re.Match[str]]:
        """The words of the thing that is named next; none where a word stands for it."""
        found: list[re.Match[str]] = []
        for word in _WORD.finditer(self.text, start, end):
            lower = word[0].lower()
            if lower in _DETERMINERS and not found:
                continue
            if lower in _ENDS or lower in _POINTS or lower in _DETERMINERS or len(found) == 3:
                break
            found.append(word)
        return found


def _stance(words: list[re.Match[str]], is_for: bool, topic: frozenset[str] = frozenset()) -> Stance:
    about = frozenset(stem(word[0]) for word in words)
    return Stance(about, is_for, words[0].start(), words[-1].end(), topic - about)
