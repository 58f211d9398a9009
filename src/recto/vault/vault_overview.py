"""What a vault holds as a whole, in a sentence, and why a search of it may find nothing."""

from recto.errors import RectoError
from recto.vault.vault import Vault

MOST_NAMED = 8
MOST_TOLD = 3


def why_nothing(vault: Vault) -> str:
    """Why no note can be found: the folder is gone, or has no notes; empty where it has some."""
    if not vault.root.is_dir():
        return f"the folder {vault.root} is no longer there: your notes could not be searched"
    try:
        return "" if vault.documents() else f"there are no notes in {vault.root}: nothing was searched"
    except RectoError as why:
        return f"your notes could not be searched: {why.message}"


def unread_notes(vault: Vault) -> str:
    """The notes that a search leaves out, because they cannot be read; empty if there are none."""
    readable = vault.hashes()
    unread = [each for each in vault.documents() if each.path not in readable]
    if not unread:
        return ""
    named = "; ".join(each.problem or each.path for each in unread[:MOST_TOLD])
    more = f"; and {len(unread) - MOST_TOLD} more" if len(unread) > MOST_TOLD else ""
    return f"not searched: {named}{more}"


def vault_overview(vault: Vault) -> str:
    """How many notes there are, and the first of them by name, those outside of folders before others."""
    notes = sorted(vault.documents(), key=lambda each: (each.path.count("/"), each.path.casefold()))
    named = ", ".join(each.title for each in notes[:MOST_NAMED])
    more = f" and {len(notes) - MOST_NAMED} more" if len(notes) > MOST_NAMED else ""
    return f"{len(notes)} {'note' if len(notes) == 1 else 'notes'}: {named}{more}"
