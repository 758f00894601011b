"""What the Messages API gave back, made plain: a receipt with the answer as it came.

The client checks nothing: a page, or JSON that is no message, arrives as if it were an answer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.core.usage import Receipt, Usage
from engine.prompts import PROMPT_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.ports.llm import LlmRequest


def receipt_of(
    message: object, request: LlmRequest, cost: Callable[[str, Usage], int | None]
) -> Receipt:
    """Return what is known of an answer, whatever it is; `cost` prices a model's usage."""
    usage = _usage(getattr(message, "usage", None))
    model = getattr(message, "model", None)
    model = model if isinstance(model, str) and model else request.model
    if usage is not None:
        usage = replace(usage, cost_nano_usd=cost(request.model, usage))
    reason = getattr(message, "stop_reason", None)
    return Receipt(
        model=model,
        prompt_version=PROMPT_VERSION,
        finish_reason=reason if isinstance(reason, str) else "",
        usage=usage,
        said=json.dumps(message if isinstance(message, str) else _blocks(message)),
    )


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


def _blocks(message: object) -> list[dict[str, Any]]:
    """Return the blocks of an answer; what is no block is left as an empty one."""
    content = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else []
    return [block.to_dict() if hasattr(block, "to_dict") else {} for block in blocks]
