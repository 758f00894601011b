"""What the Messages API gave back: a receipt of it, and a decision or the look-ups wanted first.

The client checks nothing: a page, or JSON that is no message, arrives as if it were an answer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.core.errors import Unusable, UnusableAnswer
from engine.core.usage import Receipt, Usage
from engine.ports.llm import LookUps, ReadProfile, SearchMessages
from engine.prompts import PROMPT_VERSION, RawAnswer, read_answer
from engine.prompts.forms import READ_PROFILE, SEARCH_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.ports.llm import Decision, LlmRequest, LookUp

#: Of one answer, so many look-ups are done; more are unavailable.
MOST_LOOK_UPS = 4


def receipt_of(
    message: object, request: LlmRequest, cost: Callable[[str, Usage], int | None]
) -> Receipt:
    """Return what is known of an answer, whatever it is; `cost` prices a model's usage."""
    usage = _usage(getattr(message, "usage", None))
    model = getattr(message, "model", None)
    model = model if isinstance(model, str) and model else request.model
    if usage is not None:
        usage = replace(usage, cost_nano_usd=cost(request.model, usage))
    return Receipt(
        model=model,
        prompt_version=PROMPT_VERSION,
        finish_reason=_text(getattr(message, "stop_reason", None)),
        usage=usage,
        text=message if isinstance(message, str) else "".join(_texts(message)),
    )


def read_message(message: object, request: LlmRequest, receipt: Receipt) -> Decision | LookUps:
    """Return what an answer decides or wants to look up; raises `UnusableAnswer` with its receipt."""
    try:
        return _read(message, request, receipt)
    except UnusableAnswer as error:
        raise UnusableAnswer(error.reason, receipt=receipt) from error


def _read(message: object, request: LlmRequest, receipt: Receipt) -> Decision | LookUps:
    if isinstance(message, str):
        raise UnusableAnswer(Unusable.HTML)
    if not _blocks(message):
        refused = receipt.finish_reason == "refusal"
        raise UnusableAnswer(Unusable.REFUSED if refused else Unusable.EMPTY)
    if receipt.usage is None:
        raise UnusableAnswer(Unusable.NO_USAGE)
    if receipt.finish_reason == "tool_use":
        if not request.may_look_up:
            raise UnusableAnswer(Unusable.TOOL)
        return _look_ups(_blocks(message))
    raw = RawAnswer(texts=tuple(_texts(message)), finish_reason=receipt.finish_reason)
    return read_answer(request.context, raw)


def _look_ups(blocks: list[Any]) -> LookUps:
    said = [block.to_dict() for block in blocks]
    uses = [block for block in said if block.get("type") == "tool_use"]
    wanted = [_look_up(use) for use in uses[:MOST_LOOK_UPS]]
    surplus = [None] * (len(uses) - len(wanted))
    return LookUps(wanted=(*wanted, *surplus), said=json.dumps(said))


def _look_up(use: dict[str, Any]) -> LookUp | None:
    """Return one wish; None if it is none of ours, or lacks what it needs."""
    asked = use.get("input")
    asked = asked if isinstance(asked, dict) else {}
    match use.get("name"), asked:
        case (name, {"name": str(of)}) if name == READ_PROFILE:
            return ReadProfile(name=of)
        case (name, {"words": str(words)}) if name == SEARCH_MESSAGES:
            return SearchMessages(words=words)
    return None


def _usage(billed: object) -> Usage | None:
    """Return the tokens as billed; None where they are not said. Only input and output must be."""
    given, made = getattr(billed, "input_tokens", None), getattr(billed, "output_tokens", None)
    if not isinstance(given, int) or not isinstance(made, int):
        return None
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cache_read_tokens=getattr(billed, "cache_read_input_tokens", None) or 0,
        cache_write_tokens=getattr(billed, "cache_creation_input_tokens", None) or 0,
    )


def _blocks(message: object) -> list[Any]:
    content = getattr(message, "content", None)
    return content if isinstance(content, list) else []


def _texts(message: object) -> list[str]:
    """Return all the texts of an answer; what the model thought before is none of them."""
    blocks = (block for block in _blocks(message) if getattr(block, "type", "") == "text")
    return [_text(getattr(block, "text", None)) for block in blocks]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
