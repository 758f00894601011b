"""Post: a chance to answer a banked post, to write a new root, or to let it pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.chance import keyed_random
from engine.core.effects import Effect, Post, PostChance, Reply
from engine.core.errors import UnusableAnswer
from engine.core.mentions import first_mentioned
from engine.core.participation import has_seat, pair_refusal
from engine.core.records import Visibility
from engine.core.standing import banked, offered_channels
from engine.phases.repeats import RECENT, repeats
from engine.ports.llm import (
    AnswerPost,
    BankedPost,
    ChannelInfo,
    LlmPhase,
    NewRoot,
    PostContext,
    Tier,
)
from engine.ports.store import Wanted

if TYPE_CHECKING:
    from engine.core.records import Channel, Root
    from engine.phases.scene import Scene
    from engine.ports.store import Texts

#: A prompt offers at most this many agents to address.
PARTNERS = 12
#: The key under which a chance to post claims its seat: no root has this `seq`.
POST_CLAIM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What a chance to post may be used for, as fixed at the view."""

    bank: tuple[Root, ...]
    channels: tuple[Channel, ...]
    partners: tuple[int, ...]


def is_due(scene: Scene) -> bool:
    """Tell whether a chance to post has come, by its timer alone."""
    next_post_at = scene.world.state(scene.agent).next_post_at
    return next_post_at is None or scene.now >= next_post_at


def chance(scene: Scene) -> Chance | None:
    """Return what is on offer now; None if nothing is."""
    world, rules = scene.world, scene.rules
    channels = offered_channels(world, scene.agent, scene.now, rules.config)
    bank: tuple[Root, ...] = ()
    if has_seat(world, rules.claims, scene.agent, rules.config):
        answerable = banked(world, scene.agent, scene.now, rules)
        bank = tuple(root for root, refusal in answerable if refusal is None)
    if not bank and not channels:
        return None
    return Chance(bank=bank, channels=channels, partners=_partners(scene) if channels else ())


def _partners(scene: Scene) -> tuple[int, ...]:
    """Return a sample of the agents that could be addressed now, ascending."""
    luck = keyed_random(scene.seed, scene.spec.slug, scene.number, "partners")
    sample = scene.world.some_mates(scene.agent, 2 * PARTNERS, luck)
    free = (
        mate
        for mate in sample
        if pair_refusal(scene.world, scene.agent, mate, None, scene.now, scene.rules) is None
    )
    return tuple(sorted(mate for mate, _ in zip(free, range(PARTNERS), strict=False)))


async def post(scene: Scene, on_offer: Chance) -> tuple[Effect, ...]:
    """Return the draft, if there is one, and the chance it used up.

    Claims, before anything is awaited, the seat that an answer would need.
    """
    if on_offer.bank:
        scene.rules.claims.take_seat(scene.agent, POST_CLAIM)
    probability = scene.rules.config.post_skip_probability
    luck = keyed_random(scene.seed, scene.spec.slug, scene.number, "skip")
    if luck.random() < probability:
        return (PostChance(agent=scene.agent, used=False),)
    segment = _segment(scene, on_offer)
    texts = await scene.store.read(
        Wanted(
            agent=scene.agent,
            messages=tuple(root.seq for root in on_offer.bank),
            memories=tuple(dict.fromkeys((None, segment))),
            n_recent=RECENT,
        )
    )
    context = _context(scene, on_offer, texts, memory=scene.memory(texts, segment))
    draft = await _draft(scene, on_offer, context)
    if draft is not None and repeats(draft.text, (*texts.recent, *scene.written)):
        scene.refused.append("repeats")
        draft = None
    used = PostChance(agent=scene.agent, used=draft is not None)
    return (used,) if draft is None else (draft, used)


async def _draft(scene: Scene, on_offer: Chance, context: PostContext) -> Post | Reply | None:
    try:
        decision = await scene.mind.ask(LlmPhase.POST, Tier.LARGE, context)
    except UnusableAnswer as error:
        scene.refused.append(f"unusable_{error.reason}")
        return None
    match decision:
        case AnswerPost():
            return _as_reply(scene, on_offer, decision)
        case NewRoot():
            return _as_root(scene, on_offer, decision)
    return None


def _as_reply(scene: Scene, on_offer: Chance, decision: AnswerPost) -> Reply | None:
    """Accept an answer to a post that was offered, and nothing else."""
    for root in on_offer.bank:
        if root.seq == decision.seq and decision.text.strip():
            scene.rules.claims.release(scene.agent, POST_CLAIM)
            scene.rules.claims.take_seat(scene.agent, root.seq)
            return Reply(
                agent=scene.agent,
                root=root.seq,
                text=decision.text,
                answers_ordinal=root.n_messages,
            )
    scene.refused.append("unusable_unknown_id")
    return None


def _as_root(scene: Scene, on_offer: Chance, decision: NewRoot) -> Post | None:
    """Accept a root in a channel, and to a partner, that were offered, and nothing else."""
    name = decision.channel.lstrip("#")
    channel = next((one for one in on_offer.channels if one.name == name), None)
    slugs = {scene.world.agents[agent].slug: agent for agent in on_offer.partners}
    unknown_tag = decision.tag is not None and decision.tag not in slugs
    if channel is None or unknown_tag or not decision.text.strip():
        scene.refused.append("unusable_unknown_id")
        return None
    tag = None if decision.tag is None else slugs[decision.tag]
    return Post(
        agent=scene.agent,
        channel=channel.id,
        text=_addressed_text(scene, decision.text, tag),
        tag=tag,
    )


def _addressed_text(scene: Scene, text: str, tag: int | None) -> str:
    """Return the text so that the first agent it names is the one it is for."""
    if tag is None or first_mentioned(text, scene.world.handles, scene.agent) == tag:
        return text
    return f"@{scene.world.agents[tag].bot_name} {text}"


def _context(scene: Scene, on_offer: Chance, texts: Texts, *, memory: str) -> PostContext:
    authors = {root.seq: root.author for root in on_offer.bank}
    bank = []
    for message in texts.messages:
        author = authors[message.seq]
        profile = scene.profile(author) if author in scene.world.agents else None
        bank.append(BankedPost(entry=scene.entry(message), author=profile))
    return PostContext(
        persona=scene.persona(),
        memory=memory,
        channels=tuple(ChannelInfo(name=one.name, topic=one.topic) for one in on_offer.channels),
        bank=tuple(bank),
        partners=tuple(scene.profile(agent) for agent in on_offer.partners),
        recent=texts.recent,
        may_start_root=bool(on_offer.channels),
    )


def _segment(scene: Scene, on_offer: Chance) -> int | None:
    """Return whose memory is shown beside the public one: a private channel's, only where nothing
    public can be written.

    A chance that offers public channels must not show what was said in private.
    """
    channels = {channel.id: channel.visibility for channel in on_offer.channels}
    channels |= {
        root.channel: scene.world.channels[root.channel].visibility for root in on_offer.bank
    }
    private = [one for one, visibility in channels.items() if visibility is Visibility.PRIVATE]
    return private[0] if len(channels) == 1 and private else None
