"""A request as all that it shows: equal for requests that a model could not tell apart."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.prompts.found import show_found
from engine.prompts.limits import LIMITS
from engine.prompts.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.ports.llm import Context, LlmRequest
    from engine.prompts.limits import Limits
    from engine.prompts.prompt import Prompt


def prompt_of(request: LlmRequest) -> Prompt:
    """Return the prompt of a request; a short one where a whole one was too long."""
    return _rendered(request.context, limits_of(request))


def limits_of(request: LlmRequest) -> Limits:
    """Return how long the texts of a request may be."""
    return LIMITS.halved() if request.is_short else LIMITS


@lru_cache(maxsize=256)
def _rendered(context: Context, limits: Limits) -> Prompt:
    """Render once what is estimated, sent, recorded, and perhaps sent again."""
    return render(context, limits)


def asked_of(request: LlmRequest) -> tuple[str, ...]:
    """Return the parts of a request in order: its prompt, then each round of look-ups."""
    return (*prompt_of(request).texts(), *_rounds(request))


def _rounds(request: LlmRequest) -> Iterator[str]:
    for one in request.rounds:
        yield one.asked.said
        for found in one.found:
            yield show_found(found, request.context.persona, limits_of(request))
