"""Which posts matter to an agent, and what it posts itself: an answer, a new root, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.backends.llm.offline.fit import (
    Pairing,
    interests,
    nearest,
    pairing,
    rarity,
    refusal_of,
    text_score,
)
from engine.backends.llm.offline.terms import best_term, noun_phrases, terms_of
from engine.backends.llm.offline.voice import Voice, named
from engine.backends.llm.offline.words import words_of
from engine.ports.llm import (
    AnswerPost,
    BankedPost,
    ChannelInfo,
    Chosen,
    Entry,
    NewRoot,
    Persona,
    PostContext,
    Profile,
    PruneContext,
    ScanContext,
    SkipPost,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

#: From this score on a post is worth an answer: about two rare words, or one that is wished for.
WORTH_ANSWERING = 1.5
#: A partner of this fit may be called by name in a new root.
WORTH_CALLING = 0.12
_FIT_FACTOR = 4.0
_LEAST_SHARE = 0.5
_LEAST_FIT = 0.01
_OWN_SHARE = 0.3
_REMEMBERED_FACTOR = 0.4
_CALLING_SHARE = 0.65
_SKIPPING_SHARE = 0.05
_WAITING_SHARE = 0.5
_MOST_PARTNERS = 24
_MOST_NAMED = 6
_N_LATELY = 12
_TRIES = 8


def scan(context: ScanContext) -> Chosen:
    """Return the posts that share rare terms with the agent, without those it refuses.

    Beside a post of twice their worth, the lesser ones are passed over.
    """
    authors = {author.bot_name: author for author in context.authors}
    judge = _Judge.of(context.persona, [post.text for post in context.posts])
    scores = {post.seq: judge.score(post, authors.get(post.author)) for post in context.posts}
    least = max(WORTH_ANSWERING, _LEAST_SHARE * max(scores.values(), default=0.0))
    return Chosen(seqs=tuple(seq for seq, score in scores.items() if score >= least))


def prune(context: PruneContext) -> Chosen:
    """Return the best `n_keep` posts, in the order shown; of equals the earlier stays."""
    judge = _Judge.of(context.persona, [post.text for post in context.posts])
    ranked = sorted(context.posts, key=lambda post: judge.score(post, None), reverse=True)
    kept = {post.seq for post in ranked[: context.n_keep]}
    return Chosen(seqs=tuple(post.seq for post in context.posts if post.seq in kept))


def post(context: PostContext, chance: Random) -> AnswerPost | NewRoot | SkipPost:
    """Answer the best banked post, or open a root, or let it pass with a reason."""
    best = _best_banked(context)
    if best is not None:
        return _answer(context, best, chance)
    if not context.may_start_root or not context.channels:
        return SkipPost(reason="No post in the bank fits, and no new root may be started.")
    if chance.random() < _SKIPPING_SHARE:
        return SkipPost(reason="Nothing is urgent enough to be said now.")
    return _root(context, chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """What posts are worth to one agent, beside the posts that are shown with them."""

    persona: Persona
    liked: Mapping[str, float]
    rare: Mapping[str, float]

    @classmethod
    def of(cls, persona: Persona, texts: list[str]) -> _Judge:
        liked = interests(persona.public_profile, persona.private_instructions)
        return cls(persona=persona, liked=liked, rare=rarity(texts))

    def score(self, entry: Entry, author: Profile | None) -> float:
        """Return the worth of a post, -1 for one whose topic or author is refused."""
        profile, private = self.persona.public_profile, self.persona.private_instructions
        if refusal_of(profile, private, "", (entry.text,)):
            return -1.0
        score = text_score(self.liked, entry.text, self.rare)
        if author is None:
            return score
        pair = pairing(profile, private, author.public_profile)
        return -1.0 if pair.refused else score + _FIT_FACTOR * pair.fit


def _best_banked(context: PostContext) -> BankedPost | None:
    """Return the banked post worth most, the oldest of equals; None if none is worth an answer.

    Once chosen by a scan, a post needs half as much: it stands beside other posts here.
    """
    judge = _Judge.of(context.persona, [banked.entry.text for banked in context.bank])
    scored = [(judge.score(banked.entry, banked.author), banked) for banked in context.bank]
    score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return best if score >= _LEAST_SHARE * WORTH_ANSWERING else None


def _answer(context: PostContext, banked: BankedPost, chance: Random) -> AnswerPost:
    persona, entry, author = context.persona, banked.entry, banked.author
    profile = author.public_profile if author else ""
    pair = pairing(persona.public_profile, persona.private_instructions, profile)
    name = named(author.represents if author else entry.author, "you")
    voice = _voice(context, pair, name, chance)
    voice.more["topic"] = _topic(entry.text, pair, persona)
    voice.more["person"] = name
    if author is not None:
        return AnswerPost(seq=entry.seq, text=voice.write("answer"))
    voice.own = nearest(voice.own, entry.text)
    return AnswerPost(seq=entry.seq, text=voice.write("answer_person"))


def _topic(text: str, pair: Pairing, persona: Persona) -> str:
    """Return what a post is about: a term of its author that it names, else its rarest word."""
    lowered = text.lower()
    named_terms = [term for term in pair.theirs if term.lower() in lowered]
    if named_terms:
        return named_terms[0]
    return (
        best_term(text, interests(persona.public_profile, persona.private_instructions)) or "this"
    )


def _root(context: PostContext, chance: Random) -> NewRoot | SkipPost:
    """Write a root on two own terms, with the best partner in mind and perhaps by name."""
    persona = context.persona
    phrases = terms_of(persona.public_profile).phrases or (
        named(persona.represents, persona.bot_name),
    )
    partner, pair = _best_partner(context, chance)
    own = _unsaid_pair(pair.own or phrases, context.recent[-_N_LATELY:], chance)
    if not own:
        return SkipPost(reason="The last messages said all there is to say.")
    if partner is None and chance.random() < _WAITING_SHARE:
        return SkipPost(reason="Nobody who fits is free to answer just now.")
    theirs = pair.theirs[:_MOST_NAMED]
    liked = interests(persona.public_profile, persona.private_instructions)
    channel = _channel(context.channels, (*own, *theirs[:1]), liked, chance)
    name = named(partner.represents, partner.bot_name) if partner else ""
    voice = _voice(context, pair, name, chance)
    voice.own = own
    voice.theirs = theirs or noun_phrases(channel.topic) or phrases
    called = _called(partner, pair, chance)
    if called is None:
        return NewRoot(channel=channel.name, text=voice.write("root"), tag=None)
    voice.more["handle"] = called.bot_name
    return NewRoot(channel=channel.name, text=voice.write("tagged_root"), tag=called.slug)


def _unsaid_pair(
    terms: tuple[str, ...], lately: tuple[str, ...], chance: Random
) -> tuple[str, ...]:
    """Return two terms (or the only one) that no late message names together; () if none."""
    texts = [text.lower() for text in lately]
    for _ in range(_TRIES):
        drawn = tuple(chance.sample(terms, min(2, len(terms))))
        if not any(all(term.lower() in text for term in drawn) for text in texts):
            return drawn
    return ()


def _best_partner(context: PostContext, chance: Random) -> tuple[Profile | None, Pairing]:
    """Return the partner to write with in mind: by fit, rather not one that memory names."""
    persona = context.persona
    partners = list(context.partners)
    if len(partners) > _MOST_PARTNERS:
        partners = chance.sample(partners, _MOST_PARTNERS)
    best: tuple[float, Profile | None, Pairing] = (0.0, None, _alone(persona))
    for partner in partners:
        pair = pairing(persona.public_profile, persona.private_instructions, partner.public_profile)
        known = _REMEMBERED_FACTOR if partner.bot_name in context.memory else 1.0
        worth = (_LEAST_FIT + pair.fit) * known * (0.5 + chance.random())
        if worth > best[0] and not pair.refused:
            best = (worth, partner, pair)
    return best[1:]


def _alone(persona: Persona) -> Pairing:
    return pairing(persona.public_profile, persona.private_instructions, "")


def _called(partner: Profile | None, pair: Pairing, chance: Random) -> Profile | None:
    """Return the partner if it is to be called by name."""
    if pair.fit < WORTH_CALLING or chance.random() >= _CALLING_SHARE:
        return None
    return partner


def _channel(
    channels: tuple[ChannelInfo, ...],
    terms: tuple[str, ...],
    liked: Mapping[str, float],
    chance: Random,
) -> ChannelInfo:
    """Return the channel whose topic is nearest to the terms of a post, then to its author."""
    said = words_of(" ".join(terms)).weights

    def worth(channel: ChannelInfo) -> float:
        topic = words_of(f"{channel.name.replace('-', ' ')} {channel.topic}").weights
        near = sum(value for word, value in topic.items() if word in said)
        return near + _OWN_SHARE * sum(value for word, value in topic.items() if word in liked)

    best = max(map(worth, channels))
    return chance.choice([channel for channel in channels if worth(channel) == best])


def _voice(context: PostContext, pair: Pairing, you: str, chance: Random) -> Voice:
    me = named(context.persona.represents, context.persona.bot_name)
    return Voice(
        chance=chance,
        me=me,
        you=you,
        own=pair.own or (me,),
        theirs=pair.theirs,
        said=context.recent,
    )
