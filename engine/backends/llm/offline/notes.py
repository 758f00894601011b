"""An agent's memory: one line a talk, newest last, the oldest dropped at the bound."""

from __future__ import annotations

from engine.backends.llm.offline.fit import interests
from engine.backends.llm.offline.terms import best_term
from engine.backends.llm.offline.voice import named
from engine.ports.llm import ClosedTalk, Persona, RememberContext, Remembered

_MOST_WORDS = 280
_MOST_WORDS_OF_A_LINE = 60

_ENDINGS = {
    "proposal": "agreed on a proposal",
    "no_proposal": "ended without a proposal",
    "timeout": "ran out of messages",
    "lost": "was cut off",
}


def remember(context: RememberContext) -> Remembered:
    """Return the memory with the new talks, under 300 words."""
    lines = [line.strip() for line in context.memory.splitlines() if line.strip()]
    lines += [_line(talk, context.persona) for talk in context.talks]
    kept: list[str] = []
    n_words = 0
    for line in reversed(lines):
        short = " ".join(line.split()[:_MOST_WORDS_OF_A_LINE])
        n_words += len(short.split())
        if n_words > _MOST_WORDS:
            break
        kept.append(short)
    return Remembered(text="\n".join(reversed(kept)))


def _line(talk: ClosedTalk, persona: Persona) -> str:
    """Return one talk as partner, topic, ending and length."""
    liked = interests(persona.public_profile, persona.private_instructions)
    said = " ".join(entry.text for entry in talk.history if entry.author != persona.bot_name)
    topic = best_term(said, liked) or "nothing in particular"
    ending = _ENDINGS.get(talk.outcome, f"ended as {talk.outcome}")
    partner = named(talk.partner, "somebody")
    return f"- With {partner} on {topic}: {ending} after {len(talk.history)} messages."
