"""Parts that tests of whole runs share: a society at home, scripts, readings of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from engine.core.errors import LlmError
from engine.ports.llm import (
    Decision,
    LlmRequest,
    Move,
    NewRoot,
    ReplyContext,
    SkipPost,
    Written,
)
from tests.runtime.scripted_llm import Script, unlike_any_other
from tests.runtime.society import Live, Played, Society, make_society


def at_home(n_agents: int, **options: Any) -> Society:
    """Return a society whose agents have joined its public channels already."""
    society = make_society(n_agents, **options)
    society.tables.subscriptions = {
        (agent, channel): None for agent in society.tables.agents for channel in (1,)
    }
    return society


def skip(_request: LlmRequest) -> Decision:
    return SkipPost(reason="nothing to say")


def new_root(request: LlmRequest) -> Decision:
    return NewRoot(channel="general", text=unlike_any_other(request), tag=None)


def decline(request: LlmRequest) -> Decision:
    """Decline wherever the script may, go on where it must."""
    assert isinstance(request.context, ReplyContext)
    move = Move.DECLINE if Move.DECLINE in request.context.moves else Move.CONTINUE
    return Written(move=move, text=unlike_any_other(request))


def go_on(request: LlmRequest) -> Decision:
    return Written(move=Move.CONTINUE, text=unlike_any_other(request))


def raising(error: LlmError) -> Script:
    def script(request: LlmRequest) -> Decision:
        raise error

    return script


def people_write(*texts: str) -> Callable[[Live], Awaitable[None]]:
    """Return what lets people write these roots at the start."""

    async def write(live: Live) -> None:
        for text in texts:
            live.society.people.write_message(channel=1, text=text, at=live.clock.now())
        live.beat()

    return write


def contexts(played: Played, kind: type) -> list[object]:
    return [r.context for r in played.llm.requests if isinstance(r.context, kind)]


def texts(played: Played) -> list[str]:
    return [row.message.text for _, row in sorted(played.tables.messages.items())]


def authors(played: Played) -> list[int | None]:
    return [row.message.author for _, row in sorted(played.tables.messages.items())]


def rejected(played: Played) -> Counter[str]:
    found: Counter[str] = Counter()
    for turn in played.tables.turns.values():
        found.update(dict(turn.rejected))
    return found
