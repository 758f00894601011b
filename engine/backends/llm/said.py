"""An answer in the blocks of the Messages API, plain as JSON: what a decision is read from, whether
the answer comes now or from a recording."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.core.errors import Unusable, UnusableAnswer
from engine.ports.llm import LookUps, ReadProfile, SearchMessages
from engine.prompts import RawAnswer, read_answer
from engine.prompts.forms import READ_PROFILE, SEARCH_MESSAGES

if TYPE_CHECKING:
    from engine.core.usage import Receipt
    from engine.ports.llm import Decision, LlmRequest, LookUp

#: Of one answer, so many look-ups are done; more are unavailable.
MOST_LOOK_UPS = 4

Block = dict[str, Any]


def read_said(request: LlmRequest, receipt: Receipt) -> Decision | LookUps:
    """Return what an answer decides or wants to look up; raises `UnusableAnswer` with its receipt."""
    try:
        return _read(request, receipt)
    except UnusableAnswer as error:
        raise UnusableAnswer(error.reason, receipt=receipt) from error


def _read(request: LlmRequest, receipt: Receipt) -> Decision | LookUps:
    said = json.loads(receipt.said)
    if isinstance(said, str):
        raise UnusableAnswer(Unusable.HTML)
    if not said:
        refused = receipt.finish_reason == "refusal"
        raise UnusableAnswer(Unusable.REFUSED if refused else Unusable.EMPTY)
    if receipt.usage is None:
        raise UnusableAnswer(Unusable.NO_USAGE)
    if receipt.finish_reason == "tool_use":
        if not request.may_look_up:
            raise UnusableAnswer(Unusable.TOOL)
        return _look_ups(said, receipt.said)
    raw = RawAnswer(texts=tuple(_texts(said)), finish_reason=receipt.finish_reason)
    return read_answer(request.context, raw)


def _texts(said: list[Block]) -> list[str]:
    """Return all the texts of an answer; what the model thought before is none of them."""
    texts = (block.get("text") for block in said if block.get("type") == "text")
    return [text if isinstance(text, str) else "" for text in texts]


def _look_ups(said: list[Block], as_it_came: str) -> LookUps:
    uses = [block for block in said if block.get("type") == "tool_use"]
    wanted = [_look_up(use) for use in uses[:MOST_LOOK_UPS]]
    surplus = [None] * (len(uses) - len(wanted))
    return LookUps(wanted=(*wanted, *surplus), said=as_it_came)


def _look_up(use: Block) -> LookUp | None:
    """Return one wish; None if it is none of ours, or lacks what it needs."""
    asked = use.get("input")
    asked = asked if isinstance(asked, dict) else {}
    match use.get("name"), asked:
        case (name, {"name": str(of)}) if name == READ_PROFILE:
            return ReadProfile(name=of)
        case (name, {"words": str(words)}) if name == SEARCH_MESSAGES:
            return SearchMessages(words=words)
    return None
