"""The answer in a thread: which move the texts call for, and the words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.backends.llm.offline.fit import Pairing, interests, nearest, pairing, refusal_of
from engine.backends.llm.offline.terms import best_term
from engine.backends.llm.offline.voice import Voice, named, quoted
from engine.backends.llm.offline.words import words_of
from engine.core.chance import keyed_random
from engine.ports.llm import Entry, Move, Profile, ReplyContext, Stage, Written

if TYPE_CHECKING:
    from random import Random

#: From this fit on an agent agrees to a plan; below it, there is too little in common.
ENOUGH_FIT = 0.06
_UNDECIDED_SHARE = 0.28
_READINESS = 0.6
_DOUBT_SHARE = 0.3
_PATIENCE = 7
_N_OWN_LATEST = 6
_QUOTED_WORDS = 14

_NEXT_BEST = {
    Move.CONTINUE: (Move.CONTINUE, Move.PROPOSE, Move.DECLINE, Move.ACCEPT),
    Move.PROPOSE: (Move.PROPOSE, Move.CONTINUE, Move.DECLINE, Move.ACCEPT),
    Move.ACCEPT: (Move.ACCEPT, Move.PROPOSE, Move.CONTINUE, Move.DECLINE),
    Move.DECLINE: (Move.DECLINE, Move.CONTINUE, Move.PROPOSE, Move.ACCEPT),
}


def reply(context: ReplyContext, seed: int, thread: int, chance: Random) -> Written:
    """Return the move and text that the profiles, the wishes and the history call for."""
    pair = _pair(context)
    undecided = _is_undecided(context, seed, thread)
    wanted = _wanted(context, pair, chance, undecided=undecided)
    move = next(move for move in _NEXT_BEST[wanted] if move in context.moves)
    return Written(move=move, text=_text(context, pair, move, chance))


def _pair(context: ReplyContext) -> Pairing:
    """Return the two sides; what the other has said in the thread may call a refusal, too."""
    persona, partner = context.persona, context.partner
    profile = partner.public_profile if partner else ""
    pair = pairing(persona.public_profile, persona.private_instructions, profile)
    if pair.refused:
        return pair
    other = partner.bot_name if partner else ""
    said = tuple(
        entry.text
        for entry in context.history
        if entry.author == other or not (other or _is_own(entry, context))
    )
    refused = refusal_of(persona.public_profile, persona.private_instructions, "", said)
    return Pairing(own=pair.own, theirs=pair.theirs, fit=pair.fit, refused=refused)


def _is_undecided(context: ReplyContext, seed: int, thread: int) -> bool:
    """Tell whether these two never come to a conclusion in this thread; both sides agree on it."""
    if context.partner is None:
        return False
    low, high = sorted((context.persona.slug, context.partner.slug))
    chance = keyed_random(seed, "undecided", low, high, thread)
    return chance.random() < _UNDECIDED_SHARE


def _wanted(context: ReplyContext, pair: Pairing, chance: Random, *, undecided: bool) -> Move:
    """Return the best move, allowed or not."""
    if pair.refused:
        return Move.DECLINE
    if context.partner is None:
        return Move.DECLINE if context.stage is Stage.CONCLUDE else Move.CONTINUE
    if undecided:
        return _undecided_move(context.stage, chance)
    if context.summary is not None:
        return _verdict(context, pair, context.summary, chance)
    return _next_move(context, pair.fit, chance)


def _undecided_move(stage: Stage, chance: Random) -> Move:
    if stage is Stage.CONCLUDE or (stage is Stage.DECIDE and chance.random() < _READINESS):
        return Move.PROPOSE
    return Move.CONTINUE


def _verdict(context: ReplyContext, pair: Pairing, summary: Entry, chance: Random) -> Move:
    """Answer a summary: it has to fit, to name what the agent cares for, and to leave no doubt."""
    liked = interests(context.persona.public_profile, context.persona.private_instructions)
    if not any(word in liked for word in words_of(summary.text).weights):
        return Move.CONTINUE
    if pair.fit >= ENOUGH_FIT and chance.random() >= _DOUBT_SHARE:
        return Move.ACCEPT
    return Move.CONTINUE if context.stage is Stage.EXPLORE else Move.DECLINE


def _next_move(context: ReplyContext, fit: float, chance: Random) -> Move:
    """Return what to do without a summary: propose what fits, decline what does not, in time."""
    if context.stage is Stage.CONCLUDE:
        return Move.DECLINE
    is_ready = context.message_number >= _PATIENCE or chance.random() < _READINESS
    if context.stage is Stage.EXPLORE or not is_ready:
        return Move.CONTINUE
    return Move.PROPOSE if fit >= ENOUGH_FIT else Move.DECLINE


def _text(context: ReplyContext, pair: Pairing, move: Move, chance: Random) -> str:
    persona = context.persona
    person = _person_to_answer(context)
    voice = Voice(
        chance=chance,
        me=named(persona.represents, persona.bot_name),
        you=_name_of(context.partner, person),
        own=pair.own or (named(persona.represents, persona.bot_name),),
        theirs=pair.theirs,
        said=[entry.text for entry in context.history if _is_own(entry, context)][-_N_OWN_LATEST:],
        more={"refused": pair.refused},
    )
    extra = []
    guidance = quoted(context.guidance, _QUOTED_WORDS)
    if guidance:
        voice.more["guidance"] = guidance
        extra.append("guided")
    kind = _kind(context, pair, move)
    if person is not None or kind.endswith("person"):
        voice.more |= _spoken_to(context, person)
        if person is not None and context.partner is None:
            voice.own = nearest(voice.own, person.text)
        extra += [] if kind.endswith("person") else ["person"]
    return voice.write(kind, *extra)


def _kind(context: ReplyContext, pair: Pairing, move: Move) -> str:
    """Return which kind of message carries this move; the stage shows in it."""
    match move:
        case Move.ACCEPT:
            return "accept"
        case Move.PROPOSE:
            return "propose" if context.summary is None else "counter"
        case Move.DECLINE:
            return _kind_of_no(context, pair)
        case Move.CONTINUE:
            return _kind_of_more(context)


def _kind_of_no(context: ReplyContext, pair: Pairing) -> str:
    if pair.refused:
        return "refuse"
    if context.partner is None:
        return "end_person"
    return "too_little" if pair.fit < ENOUGH_FIT else "no_plan"


def _kind_of_more(context: ReplyContext) -> str:
    if context.partner is None:
        return "answer_person"
    if context.summary is not None:
        return "counter"
    return "explore" if context.stage is Stage.EXPLORE else "sum_up"


def _person_to_answer(context: ReplyContext) -> Entry | None:
    """Return the last person's message since the agent spoke, if any."""
    for entry in reversed(context.history):
        if not entry.is_bot:
            return entry
        if _is_own(entry, context):
            return None
    return None


def _spoken_to(context: ReplyContext, person: Entry | None) -> dict[str, str]:
    """Return the gaps for words to a person: the name, and the rarest thing they spoke of."""
    if person is None:
        return {"person": "everybody", "topic": "this thread"}
    liked = interests(context.persona.public_profile, context.persona.private_instructions)
    topic = best_term(person.text, liked)
    return {"person": named(person.author, "you"), "topic": topic or "this"}


def _name_of(partner: Profile | None, person: Entry | None) -> str:
    if partner is not None:
        return named(partner.represents, partner.bot_name)
    return named(person.author, "you") if person is not None else "you"


def _is_own(entry: Entry, context: ReplyContext) -> bool:
    return entry.is_bot and entry.author == context.persona.bot_name
