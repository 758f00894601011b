"""An answer as it came becomes a decision, or an `UnusableAnswer` with its reason. Nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.errors import Unusable, UnusableAnswer
from engine.ports.llm import (
    PostContext,
    PruneContext,
    RememberContext,
    ReplyContext,
    ScanContext,
)
from engine.prompts.choices import chosen, kept, posted, remembered, written
from engine.prompts.objects import only_object

if TYPE_CHECKING:
    from engine.ports.llm import Context, Decision

#: How an answer ends that somebody has cut off: its length, or the room in the model's window.
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """An answer as a service gave it: all of its texts, in order, and the word for why it ended."""

    texts: tuple[str, ...]
    finish_reason: str


def read_answer(context: Context, raw: RawAnswer) -> Decision:
    """Return the decision of an answer; raises `UnusableAnswer`, and nothing else."""
    if raw.finish_reason == "refusal":
        raise UnusableAnswer(Unusable.REFUSED)
    if raw.finish_reason in _CUT:
        raise UnusableAnswer(Unusable.TRUNCATED)
    if not raw.texts:
        raise UnusableAnswer(Unusable.EMPTY)
    answer = only_object("".join(raw.texts))
    match context:
        case ScanContext():
            return chosen(context, answer)
        case PruneContext():
            return kept(context, answer)
        case ReplyContext():
            return written(context, answer)
        case PostContext():
            return posted(context, answer)
        case RememberContext():
            return remembered(answer)
