"""A thread as its next author is shown it: from the root to the newest message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.prompts.entries import channel, left_out, profile, speaker
from engine.prompts.marks import marked
from engine.prompts.texts import size

if TYPE_CHECKING:
    from engine.ports.llm import Entry, ReplyContext
    from engine.prompts.limits import Limits
    from engine.prompts.templates import Words


def talk(context: ReplyContext, head: Words, limits: Limits) -> tuple[str, ...]:
    """Return the other side, the root, and as many of the newest messages as the window holds.

    While the thread fits into the window, this only grows at its end.
    """
    partner = context.partner
    shown = "" if partner is None else _partner(profile(partner, limits.profile))
    root, *answers = context.history
    newest = _newest(answers, limits)
    gap = left_out(context.n_left_out + len(answers) - len(newest))
    messages = (
        marked("message", one.text, limits.message, speaker(one, context.persona))
        for one in (root, *newest)
    )
    first = next(messages)
    opening = head.filled(partner=shown, channel=channel(root.channel))
    return (opening, first, *([gap] if gap else []), *messages)


def now_values(context: ReplyContext, limits: Limits) -> dict[str, str | int]:
    """Return what is asked now: the stage, the moves, and what waits for an answer."""
    return {
        "guidance": _guidance(context, limits),
        "summary": _summary(context, limits),
        "partner_note": "" if context.partner else _NO_PARTNER,
        "message_number": context.message_number,
        "stage": str(context.stage),
        "moves": ", ".join(context.moves),
    }


_NO_PARTNER = "No other agent is opposite you in this talk: you answer people.\n"


def _partner(shown: str) -> str:
    return f"The other side of this talk.\n\n{shown}"


def _guidance(context: ReplyContext, limits: Limits) -> str:
    if not context.guidance.strip():
        return ""
    wish = marked("guidance", context.guidance, limits.message)
    return f"People have read the proposal of this thread and asked for a revision.\n\n{wish}"


def _summary(context: ReplyContext, limits: Limits) -> str:
    if context.summary is None:
        return ""
    about = speaker(context.summary, context.persona)
    text = marked("proposal", context.summary.text, limits.message, about)
    return f"This proposal of the other side waits for your word.\n\n{text}"


def _newest(answers: list[Entry], limits: Limits) -> list[Entry]:
    """Return the newest answers that fit beside the root; the last one always does."""
    left = limits.window - limits.message
    newest: list[Entry] = []
    for answer in reversed(answers):
        left -= min(size(answer.text), limits.message)
        if left < 0 and newest:
            break
        newest.append(answer)
    return newest[::-1]
