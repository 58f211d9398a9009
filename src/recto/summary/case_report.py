"""Case reports: what somebody who serves the user tells about the user's own matter: that something was approved,
booked or put off, and under which number. Unlike advice, it cannot be had again. Knows one sentence at a time.
"""

import re

from recto.summary.sentences import word_set
from recto.text import LazyPattern, text_cache

_DONE = (
    r"approved|booked|confirmed|delayed|shipped|dispatched|refunded|credited|(?:re)?scheduled|cancell?ed|registered"
    r"|reserved|forwarded|assigned|issued|extended|granted|rejected|declined|postponed|held|reports? that|now says"
    r"|genehmigt|gebucht|bestätigt|verschoben|versandt|verschickt|erstattet|gutgeschrieben|storniert|eingetragen"
    r"|weitergeleitet|eingegangen|verlängert|abgelehnt|aprobad[oa]|reservad[oa]|confirmad[oa]|retrasad[oa]|enviad[oa]"
    r"|reembolsad[oa]|abonad[oa]|cancelad[oa]|registrad[oa]|aplazad[oa]|asignad[oa]|approuvée?|réservée?|confirmée?"
    r"|retardée?|expédiée?|remboursée?|créditée?|annulée?|enregistrée?|reportée?|transmise?|goedgekeurd|geboekt"
    r"|bevestigd|vertraagd|verzonden|terugbetaald|gecrediteerd|geannuleerd|verplaatst|ingepland|doorgestuurd"
    r"|zatwierdzon[aoy]|zarezerwowan[aoy]|potwierdzon[aoy]|opóźnion[aoy]|wysłan[aoy]|zwrócon[aoy]|anulowan[aoy]"
    r"|przesunięt[aoy]"
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
_REPORTS = LazyPattern(rf"\b(?:{_DONE}|{_NUMBER_OF}|{_DATE_OF})\b")
# What is so in general, or would be, is no report.
_GENERAL = re.compile(
    r"\b(?:if|usually|typically|generally|normally|would|could|should be|can be|may be|might|wenn|falls|meistens"
    r"|üblicherweise"
    r"|normalerweise|würde|könnte|si|normalmente|suelen?|podría|généralement|pourrait|als|meestal|zou|jeśli|zwykle"
    r"|most"
    r"|often|people|you need|you should)\b"
)
_VALUE = re.compile(
    r"\d|(?<=[^.!?:] )[A-ZÄÖÜÉ][a-zäöüéß]+ [A-ZÄÖÜÉ][a-zäöüéß]|\b(?:Ms|Mrs|Mr|Frau|Herr|Sra?|Mme|M)\.? [A-Z]"
)
_UNSPACED = re.compile("承認|予約番号|確定しま|遅延|発送しま|返金|受付番号|追跡番号|お届け日|手配しま")
_MAX_REPORT = 240


@text_cache(8192)  # the summary and the ledger ask
def reports_case(text: str) -> bool:
    """Whether it tells what has become of the user's matter: "Your refund of 40 € was approved on Monday"."""
    if len(text) > _MAX_REPORT or text.endswith(("?", "？")) or not _VALUE.search(text):
        return False
    if not text.isascii() and _UNSPACED.search(text):
        return True
    lower = text.lower()
    return _REPORTS.search(lower) is not None and _GENERAL.search(lower) is None


# Words of arriving, as terms: a later day of it takes the place of the former one.
ARRIVAL = word_set(
    "reach reaches arrive arrives arrival deliver carrier courier parcel shipmen package liefert lieferu liefern "
    "paket "
    "sendung zustell ankomme entrega llega llegará envío paquete reparti livrais livré colis livreur bezorg bezorgd "
    "levering pakket bezorge dostawa przesył paczka kurier"
)
