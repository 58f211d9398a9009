"""Case reports: what somebody who serves the user tells about the user's own matter: that something was approved,
booked or put off, and under which number. Unlike advice, it cannot be had again. Knows one sentence at a time.
"""

import re

from recto.chat.cues import words_of
from recto.summary.sentences import word_set
from recto.text import LazyPattern, text_cache

_DONE = word_set(
    "approved booked confirmed delayed shipped dispatched refunded credited scheduled rescheduled cancelled canceled "
    "registered reserved forwarded assigned issued extended granted rejected declined postponed held genehmigt "
    "gebucht "
    "bestätigt verschoben versandt verschickt erstattet gutgeschrieben storniert eingetragen weitergeleitet "
    "eingegangen "
    "verlängert abgelehnt aprobado aprobada reservado reservada confirmado confirmada retrasado retrasada enviado "
    "enviada "
    "reembolsado reembolsada abonado abonada cancelado cancelada registrado registrada aplazado aplazada asignado "
    "asignada "
    "approuvé approuvée réservé réservée confirmé confirmée retardé retardée expédié expédiée remboursé remboursée "
    "crédité "
    "annulé annulée enregistré enregistrée reporté reportée transmis transmise goedgekeurd geboekt bevestigd "
    "vertraagd "
    "verzonden terugbetaald gecrediteerd geannuleerd verplaatst ingepland doorgestuurd zatwierdzony zatwierdzona "
    "zatwierdzono zarezerwowany zarezerwowana potwierdzony potwierdzona potwierdzono opóźniony opóźniona wysłany "
    "wysłana "
    "wysłano zwrócony zwrócono anulowany anulowana anulowano przesunięty przesunięta przesunięto "
    "committed merged deployed signed submitted paid ordered bezahlt bestellt unterschrieben eingereicht pagado pagada "
    "firmado firmada presentado presentada payé payée signé signée commandé commandée betaald getekend besteld "
    "ingediend "
    "approvato approvata prenotato prenotata confermato confermata spedito spedita rimborsato rimborsata annullato "
    "annullata rinviato rinviata firmato firmata pagato pagata ordinato ordinata zapłacono zamówiono podpisano "
    "aprovado aprovada adiado adiada cancelado cancelada reembolsado marcado marcada pago paga assinado assinada"
)
_NUMBER_OF = (
    r"(?:tracking|reference|case|ticket|complaint|booking|confirmation|order|claim|file|policy|customer) (?:number"
    r"|code|id)"
    r"|(?:complaint|case|ticket|claim|booking|order) (?:has|got|bears) the number"
    r"|(?:sendungs|vorgangs|ticket|bestell|buchungs|kunden|rechnungs|schadens?|akten)(?:nummer|zeichen)"
    r"|número de (?:seguimiento|pedido|caso|reserva|expediente|incidencia)"
    r"|numéro de (?:suivi|commande|dossier|réservation)|(?:track|zaak|dossier|bestel|boekings|order)(?:-?code|nummer)"
    r"|numer (?:przesyłki|zamówienia|sprawy|rezerwacji|zgłoszenia)"
)
_DATE_OF = (
    r"(?:new|next|planned|expected) (?:delivery|appointment|pick-?up|arrival|collection|repair) (?:date|day|time"
    r"|slot|is)"
    r"|(?:delivery|appointment|pick-?up|technician|courier|carrier|parcel|engineer) (?:\w+ ){0,2}(?:is (?:now )?on"
    r"|is now|comes?"
    r"|arrives?|will (?:come|arrive|be))"
    r"|(?:liefertermin|termin|techniker|paket) (?:ist|kommt|lautet|wird)|(?:neuer|neue) (?:liefertermin|termin)"
    r"|(?:entrega|cita|técnico|paquete) (?:es|será|llega|viene)|(?:livraison|rendez-vous|technicien|colis) (?:est"
    r"|sera|arrive"
    r"|passe)|(?:bezorging|afspraak|monteur|pakket) (?:is|komt|wordt)|(?:dostawa|wizyta|technik|paczka) (?:jest"
    r"|będzie|przyjdzie)"
)
_REPORTS = LazyPattern(rf"\b(?:{_NUMBER_OF}|{_DATE_OF}|reports? that|now says)\b")
# Every match of it has one of these words.
_HINTS = word_set(
    "number code id reports says sendungsnummer vorgangsnummer ticketnummer bestellnummer buchungsnummer "
    "kundennummer "
    "rechnungsnummer schadensnummer schadennummer aktenzeichen número numéro tracknummer zaaknummer dossiernummer "
    "bestelnummer boekingsnummer ordernummer trackcode numer delivery appointment pickup pick-up arrival collection "
    "repair technician courier carrier parcel engineer liefertermin termin techniker paket entrega cita técnico "
    "paquete "
    "livraison rendez-vous technicien colis bezorging afspraak monteur pakket dostawa wizyta technik paczka"
)
# A sum that was worked out for the user, and how things stand: "Together that makes 1,240 €", "Restano 300 euro".
_TOTAL_WORDS = word_set(
    "total totals totale altogether together sum comes makes leaves owe left remaining insgesamt zusammen summe gesamt "
    "macht ergibt bleiben bleibt damit suma queda quedan sobran tout reste restent revient soit totaal samen komt kom "
    "zit blijft restano resta finora fanno razem łącznie sumie wychodzi zostaje todo fica sobram restam so "
    "bill share come came adds amounts fait"
)
_TOTALS = LazyPattern(
    r"\b(?:(?:in |as a |new |grand |your )?totals? (?:is|of|comes|now|cost|:)|in total|altogether|all together"
    r"|together(?: (?:that|it|you))?|(?:comes?|came|adds up|amounts) to|(?:that|this|which|it) makes"
    r"|leaves (?:you )?|you (?:now )?(?:owe|get|receive|have)|your (?:bill|share|balance|rest|refund|score) (?:is"
    r"|comes)"
    r"|(?:is|are|have|has) (?:still )?left|remaining|so far|insgesamt|zusammen|in summe|die summe|das macht"
    r"|macht (?=[€$£\d])"
    r"|ergibt"
    r"|bleib(?:en|t)(?: dir| euch| noch)?|damit (?:bist|seid|sind|liegst|liegt|kommst|kommt)|kommst du auf|gesamt\w*"
    r"|en total|suma(?:n)?|te quedan?|quedan?|sobran?|sale(?:n)? a|au total|en tout|ça fait|fait (?=[€$£\d])"
    r"|il (?:te |vous )?reste"
    r"|revient à|soit|in totaal|totaal|samen|kom(?:t|en)? (?:je |u |dat |het )?op|zit (?:je|u) op|blijft"
    r"|in totale|totale|restano|resta|finora|fanno|razem|łącznie|w sumie|wychodzi|zostaje|no total|ao todo"
    r"|fica(?:m)? em|sobram|restam)\b(?=[^?!]{0,70}\d\d)|\d\d[^.?!]{0,30}\b(?:in total|altogether|left(?: over)?"
    r"|insgesamt"
    r"|zusammen|en total|au total|in totaal|in totale|razem|w sumie|no total|over budget|under budget)\b"
)
# "The disk is at 35 % now", "Die Frist läuft jetzt bis 3. Mai"
_NOW = word_set("now jetzt nun inzwischen ahora maintenant nu adesso teraz agora")
_ENDS = LazyPattern(
    r"\b(?:expires?|runs out|runs until|is valid until|läuft (?:am|bis)|gilt bis|endet am|vence|caduca|expire|verloopt"
    r"|scade|wygasa|expira|jest ważn\w+ do)\b[^.?!]{0,30}\d"
)
_ENDING_WORDS = word_set(
    "expires expire runs valid läuft gilt endet vence caduca verloopt scade wygasa expira ważny ważna ważne"
)
# What is so in general, or would be, is no report.
_GENERAL = LazyPattern(
    r"\b(?:if|usually|typically|generally|normally|would|could|should be|can be|may be|might|wenn|falls|meistens"
    r"|üblicherweise"
    r"|normalerweise|würde|könnte|si|normalmente|suelen?|podría|généralement|pourrait|als|meestal|zou|jeśli|zwykle"
    r"|most"
    r"|often|people|you need|you should|about|around|roughly|per person|each|etwa|circa|rund|unos|unas|environ|ongeveer"
    r"|di solito|se|circa|około|normalnie|geralmente|costuma)\b"
)
_VALUE = re.compile(
    r"\d|(?<=[^.!?:] )[A-ZÄÖÜÉ][a-zäöüéß]+ [A-ZÄÖÜÉ][a-zäöüéß]|\b(?:Ms|Mrs|Mr|Frau|Herr|Sra?|Mme|M)\.? [A-Z]"
)
_UNSPACED = LazyPattern(
    "合計|全部で|総額|になります|あたり|残り|承認|予約番号|確定しま|遅延|発送しま|返金|受付番号|追跡番号|お届け日|手配しま"
)
_MAX_REPORT = 240


@text_cache(8192)  # the summary and the ledger ask
def reports_case(text: str) -> bool:
    """Whether it tells what has become of the user's matter: "Your refund of 40 € was approved on Monday"."""
    if len(text) > _MAX_REPORT or text.endswith(("?", "？")) or not _VALUE.search(text):
        return False
    if not text.isascii() and _UNSPACED.search(text):
        return True
    words, lower = words_of(text), text.lower()
    if not _TOTAL_WORDS.isdisjoint(words) and _TOTALS.search(lower) and not _GENERAL.search(lower):
        return True
    if not _NOW.isdisjoint(words) and lower.split(" ", 1)[0] not in _NOW and not _GENERAL.search(lower):
        return True
    if not _ENDING_WORDS.isdisjoint(words) and _ENDS.search(lower) and not _GENERAL.search(lower):
        return True
    is_report = not _DONE.isdisjoint(words) or (not _HINTS.isdisjoint(words) and _REPORTS.search(lower) is not None)
    return is_report and _GENERAL.search(lower) is None


# Words of arriving, as terms: a later day of it takes the place of the former one.
ARRIVAL = word_set(
    "reach reaches arrive arrives arrival deliver carrier courier parcel shipmen package liefert lieferu liefern "
    "paket "
    "sendung zustell ankomme entrega llega llegará envío paquete reparti livrais livré colis livreur bezorg bezorgd "
    "levering pakket bezorge dostawa przesył paczka kurier"
)
