"""Remember: what closed since the memory was written, in order, in one small call a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.effects import Remember
from engine.core.errors import UnusableAnswer
from engine.core.records import Memory
from engine.ports.llm import ClosedTalk, LlmPhase, RememberContext, Remembered, Tier
from engine.ports.store import Wanted

if TYPE_CHECKING:
    from engine.core.records import Talk
    from engine.phases.scene import Scene
    from engine.ports.store import ToldTalk

#: A call is told of some this many talks; the rest waits for the next turn.
MOST_TALKS = 10


async def remember(scene: Scene) -> tuple[Remember, ...]:
    """Return the new memory of the segment whose talks closed first; nothing if none did."""
    untold = scene.world.desk(scene.agent).untold
    if not untold:
        return ()
    channel = untold[0].channel
    talks = _next_talks(tuple(talk for talk in untold if talk.channel == channel))
    known = scene.world.memories.get(
        (scene.agent, channel), Memory(agent=scene.agent, channel=channel)
    )
    text = await _text(scene, talks, channel)
    return (
        Remember(
            agent=scene.agent,
            channel=channel,
            text=text,
            upto_seq=talks[-1].closed_seq,
            n_talks=len(talks),
            base_version=known.version,
        ),
    )


def _next_talks(talks: tuple[Talk, ...]) -> tuple[Talk, ...]:
    """Return the first talks, and with the last of them all that closed at the same `seq`."""
    upto_seq = talks[:MOST_TALKS][-1].closed_seq
    return tuple(talk for talk in talks if talk.closed_seq <= upto_seq)


async def _text(scene: Scene, talks: tuple[Talk, ...], channel: int | None) -> str:
    """Ask for the new text; an unusable answer keeps the old one, and is counted."""
    texts = await scene.store.read(Wanted(agent=scene.agent, memories=(channel,)))
    before = texts.memories[channel]
    told = await scene.store.told_talks(talks, agent=scene.agent)
    context = RememberContext(
        persona=scene.persona(),
        memory=before,
        talks=tuple(_shown(scene, talk) for talk in told),
    )
    try:
        decision = await scene.mind.ask(LlmPhase.REMEMBER, Tier.SMALL, context)
    except UnusableAnswer as error:
        scene.refused.append(f"unusable_{error.reason}")
        return before
    assert isinstance(decision, Remembered)
    return decision.text


def _shown(scene: Scene, talk: ToldTalk) -> ClosedTalk:
    partner = scene.world.agents.get(talk.partner) if talk.partner is not None else None
    return ClosedTalk(
        partner="a person" if partner is None else partner.bot_name,
        outcome=talk.outcome,
        history=tuple(scene.entry(message) for message in talk.history),
    )
