"""A mind for the rehearsed API that decides as the offline LLM does, asked through the real client.

The server gets bytes; the backend in front of them tells the mind which context they came from.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from engine.backends.llm.anthropic import AnthropicLlm
from engine.backends.llm.anthropic.asking import body_of
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    NewRoot,
    PostContext,
    PruneContext,
    Remembered,
    ScanContext,
    SkipPost,
    Written,
)
from tests.anthropic_api.minds import Decision
from tests.core.offline_society import llm

if TYPE_CHECKING:
    from engine.ports import llm as port
    from tests.anthropic_api.minds import Asked, Mind

_ASKED: dict[str, port.LlmRequest] = {}


class ToldLlm(AnthropicLlm):
    """The real backend; the mind hears of each request before it leaves."""

    async def complete(self, request: port.LlmRequest) -> port.LlmAnswer:
        _ASKED[_key(body_of(request, self._access.effort))] = request
        return await super().complete(request)


def as_offline(seed: int) -> Mind:
    """Decide as the offline LLM of this seed would, in the form that was asked for."""

    def mind(asked: Asked) -> Decision:
        request = _ASKED[_key(asked.body)]
        answer = asyncio.run(llm(seed).complete(request))
        return Decision(texts=(json.dumps(_form(request.context, answer.decision)),))

    return mind


def _key(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


def _form(context: port.Context, decision: object) -> dict[str, object]:
    """Return a decision in the form of its phase: what was offered is named by its number."""
    match decision:
        case Chosen(seqs=seqs):
            assert isinstance(context, ScanContext | PruneContext)
            offered = [post.seq for post in context.posts]
            return {"posts": [offered.index(seq) + 1 for seq in seqs]}
        case Written(move=move, text=text):
            return {"thought": "", "move": str(move), "text": text}
        case Remembered(text=text):
            return {"memory": text}
    assert isinstance(context, PostContext)
    return {"thought": "", "choice": _choice(context, decision)}


def _choice(context: PostContext, decision: object) -> dict[str, object]:
    match decision:
        case AnswerPost(seq=seq, text=text):
            banked = [one.entry.seq for one in context.bank]
            return {"kind": "answer", "post": banked.index(seq) + 1, "text": text}
        case NewRoot(channel=channel, text=text, tag=tag):
            channels = [one.name for one in context.channels]
            partners = [one.slug for one in context.partners]
            return {
                "kind": "root",
                "channel": channels.index(channel) + 1,
                "partner": None if tag is None else partners.index(tag) + 1,
                "text": text,
            }
        case SkipPost(reason=reason):
            return {"kind": "skip", "reason": reason}
    raise AssertionError(f"not a choice: {decision}")
