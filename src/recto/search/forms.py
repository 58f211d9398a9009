"""Forms: English words whose forms no stemmer brings together: a question says "go" where the answer says "went"."""

_GROUPS = """
begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, choose chose chosen,
come came, deal dealt, draw drew drawn, drink drank drunk, drive drove driven, eat eaten, fall fell fallen,
feed fed, feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, freeze froze frozen,
give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lead led, learn learnt, leave left, lend lent, lose lost, make made, mean meant, meet met, pay paid,
ride rode ridden, ring rang rung, rise rose risen, run ran, say said, see saw seen, sell sold, send sent, shoot shot,
show shown, sing sang sung, sink sank sunk, sit sat, sleep slept, speak spoke spoken, spend spent, stand stood,
steal stole stolen, swim swam swum, take took taken, teach taught, tell told, think thought, throw threw thrown,
understand understood, wake woke woken, wear wore worn, win won, write wrote written, child children, man men,
woman women, person people, foot feet, tooth teeth, mouse mice, life lives, wife wives, good better best,
bad worse worst
"""
_FORMS = {form: tuple(group.split()) for group in _GROUPS.split(",") for form in group.split()}
_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ing", ""), ("ing", "e"), ("ning", ""), ("ting", ""))


def alike(term: str) -> tuple[str, ...]:
    """The term, and the other forms of the same word."""
    for ending, put in _ENDINGS:
        if term.endswith(ending) and (group := _FORMS.get(term.removesuffix(ending) + put)):
            return (term, *(form for form in group if form != term))
    return (term,)
