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
    "wysłano zwrócony zwrócono anulowany anulowana anulowano przesunięty przesunięta przesunięto"
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
# What is so in general, or would be, is no report.
_GENERAL = LazyPattern(
    r"\b(?:if|usually|typically|generally|normally|would|could|should be|can be|may be|might|wenn|falls|meistens"
    r"|üblicherweise"
    r"|normalerweise|würde|könnte|si|normalmente|suelen?|podría|généralement|pourrait|als|meestal|zou|jeśli|zwykle"
    r"|most"
    r"|often|people|you need|you should)\b"
)
_VALUE = re.compile(
    r"\d|(?<=[^.!?:] )[A-ZÄÖÜÉ][a-zäöüéß]+ [A-ZÄÖÜÉ][a-zäöüéß]|\b(?:Ms|Mrs|Mr|Frau|Herr|Sra?|Mme|M)\.? [A-Z]"
)
_UNSPACED = LazyPattern("承認|予約番号|確定しま|遅延|発送しま|返金|受付番号|追跡番号|お届け日|手配しま")
_MAX_REPORT = 240


@text_cache(8192)  # the summary and the ledger ask
def reports_case(text: str) -> bool:
    """Whether it tells what has become of the user's matter: "Your refund of 40 € was approved on Monday"."""
    if len(text) > _MAX_REPORT or text.endswith(("?", "？")) or not _VALUE.search(text):
        return False
    if not text.isascii() and _UNSPACED.search(text):
        return True
    words, lower = words_of(text), text.lower()
    is_report = not _DONE.isdisjoint(words) or (not _HINTS.isdisjoint(words) and _REPORTS.search(lower) is not None)
    return is_report and _GENERAL.search(lower) is None


# Words of arriving, as terms: a later day of it takes the place of the former one.
ARRIVAL = word_set(
    "reach reaches arrive arrives arrival deliver carrier courier parcel shipmen package liefert lieferu liefern "
    "paket "
    "sendung zustell ankomme entrega llega llegará envío paquete reparti livrais livré colis livreur bezorg bezorgd "
    "levering pakket bezorge dostawa przesył paczka kurier"
)
