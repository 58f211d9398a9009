"""Messages as a summary without a model reads them: their texts, without what a work log tells already."""

from collections.abc import Collection, Sequence

from recto.chat.message import Message
from recto.sources.tools import RECALL
from recto.summary.agent_steps import (
    continue_work_log,
    find_observations,
    says_all_by_outcome,
    split_command,
    without_examples,
)
from recto.summary.extractive_summary import Extraction, PlainMessage
from recto.summary.relative_dates import day_of
from recto.summary.truncation import CountTokens


def plain_messages(
    messages: Sequence[Message], *, has_log: bool, goes_on: bool = False, late: Collection[int] = ()
) -> list[PlainMessage]:
    """`goes_on`: a former summary tells what came before; `late` are the numbers of messages that it should have
    told."""
    observed = find_observations(messages, goes_on=goes_on) if has_log else {}
    calls = [call for message in messages for call in message.calls] if has_log else []
    told = {call.id for call in calls if says_all_by_outcome(call.name, call.arguments)}
    said: list[PlainMessage] = []
    before = None
    for message in messages:
        text = "" if message.id in observed else _text_of(message, told, has_log=has_log)
        number, day = message.said if message.said in late else 0, day_of(message.time)
        is_call = not message.text and bool(message.calls)
        is_later = bool(day and before and day != before)
        said.append(PlainMessage(message.role, text, number, is_call=is_call, after_gap=is_later, day=day))
        before = day or before
    return said


def extraction_of(messages: Sequence[Message], count: CountTokens) -> Extraction:
    """Messages that no summary tells yet, with a work log where tools were used."""
    log = continue_work_log("", messages)
    return Extraction(plain_messages(messages, has_log=log is not None), count, work=log)


def _text_of(message: Message, told: set[str], *, has_log: bool) -> str:
    """A work log tells the calls, and of the results of those in `told` all that matters."""
    results = [result.text for result in message.results if result.name != RECALL and result.call_id not in told]
    text = message.text or "\n".join(results)
    if has_log:
        return split_command(text)[0] if message.role == "assistant" else without_examples(text)
    return text or " ".join(f"{call.name} {call.arguments}" for call in message.calls)
