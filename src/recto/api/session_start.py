"""Sessions to begin with: of a new conversation, and of a stored one as it was left."""

from pathlib import Path

from recto.chat.conversation import Conversation
from recto.engine import Engine
from recto.errors import RectoError
from recto.settings import settings as configuration
from recto.turn.messages import pending_reply
from recto.turn.session import PROJECT, SETTINGS, ChatSession
from recto.vault.vault import Vault


def new_session(engine: Engine, vault: Vault | None, agent: str, model: str = "") -> ChatSession:
    return ChatSession("", None, model or _named_model(engine.settings), vault, agent=agent, project=engine.folder)


def stored_session(engine: Engine, settings: configuration.Settings, conversation: Conversation) -> ChatSession:
    """A session at the head of a stored conversation, as it was left but for model and vault that an option names."""
    details, agent = conversation.details, conversation.agent
    model = _named_model(settings) or str(details.get("model") or "")
    if not model and settings is not engine.settings and settings.origin("model") != "default":
        model = engine.agents.read_or_last(agent).model or settings.model  # else the desk's option would answer
    project = Path(details[PROJECT]) if details.get(PROJECT) else engine.folder
    session = ChatSession(conversation.id, conversation.head, model, agent=agent, project=project)
    session.apply(chosen=details.get(SETTINGS) or {}, pending=pending_reply(engine.store, conversation.head))
    own = str(details.get("vault") or "") if settings.origin("vault") != "option" else ""
    for place in filter(None, (settings.vault, own)):
        try:
            session.apply(vault=engine.vaults.open(Path(place)))
        except RectoError as why:
            session.note_later(f"the vault of this conversation cannot be used: {why.message}")
    return session


def _named_model(settings: configuration.Settings) -> str:
    """A model that was asked for by name stays with the conversation; one from the settings may change with them."""
    return settings.model if settings.origin("model") == "option" else ""
