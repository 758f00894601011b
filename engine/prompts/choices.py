"""What an answer of each phase chooses: numbers become what they were shown for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from engine.core.errors import Unusable, UnusableAnswer
from engine.core.texts import is_storable
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Move,
    NewRoot,
    Remembered,
    SkipPost,
    Written,
)
from engine.prompts.forms import MOST_OFFERED
from engine.prompts.wording import own_words, within_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.ports.llm import Entry, PostContext, PruneContext, ReplyContext, ScanContext
    from engine.prompts.objects import Answer

T = TypeVar("T")

#: A memory has fewer words than this.
_MEMORY_WORDS = 300


def chosen(context: ScanContext, answer: Answer) -> Chosen:
    """Return the posts that a scan chose, the best first."""
    return Chosen(seqs=tuple(_seqs(context.posts, answer)))


def kept(context: PruneContext, answer: Answer) -> Chosen:
    """Return the posts that stay, exactly as many as asked for: the newest fill up what is missing."""
    newest = sorted((post.seq for post in context.posts), reverse=True)
    stay = list(dict.fromkeys([*_seqs(context.posts, answer), *newest]))
    return Chosen(seqs=tuple(stay[: context.n_keep]))


def written(context: ReplyContext, answer: Answer) -> Written:
    """Return the move and the text of a reply."""
    answer.only("thought", "move", "text")
    answer.text("thought")
    move = next((one for one in context.moves if one == answer.text("move")), None)
    if move is None:
        known = answer.text("move") in set(Move)
        raise UnusableAnswer(Unusable.MOVE if known else Unusable.MISSHAPEN)
    others = [entry.author for entry in context.history]
    if context.partner is not None:
        others.append(context.partner.bot_name)
    return Written(move=move, text=own_words(answer.text("text"), context.persona.bot_name, others))


def posted(context: PostContext, answer: Answer) -> AnswerPost | NewRoot | SkipPost:
    """Return what became of a chance to post."""
    answer.only("thought", "choice")
    answer.text("thought")
    choice = answer.part("choice")
    match choice.text("kind"):
        case "answer":
            return _answer(context, choice)
        case "root":
            return _root(context, choice)
        case "skip":
            choice.only("kind", "reason")
            reason = choice.text("reason")
            return SkipPost(reason=reason if reason.strip() and is_storable(reason) else "none")
    raise UnusableAnswer(Unusable.MISSHAPEN)


def remembered(answer: Answer) -> Remembered:
    """Return a memory, without the lines at its end that are too many."""
    answer.only("memory")
    text = answer.text("memory").strip()
    if not text:
        raise UnusableAnswer(Unusable.BLANK)
    if not is_storable(text):
        raise UnusableAnswer(Unusable.UNSTORABLE)
    return Remembered(text=within_words(text, _MEMORY_WORDS))


def _answer(context: PostContext, choice: Answer) -> AnswerPost:
    choice.only("kind", "post", "text")
    banked = _offered(context.bank, choice.number("post"))
    return AnswerPost(seq=banked.entry.seq, text=_words(context, choice))


def _root(context: PostContext, choice: Answer) -> NewRoot:
    choice.only("kind", "channel", "partner", "text")
    channel = _offered(context.channels if context.may_start_root else (), choice.number("channel"))
    tag = None
    if choice.fields["partner"] is not None:
        tag = _offered(context.partners, choice.number("partner")).slug
    return NewRoot(channel=channel.name, tag=tag, text=_words(context, choice))


def _words(context: PostContext, choice: Answer) -> str:
    others = [banked.entry.author for banked in context.bank]
    others += [partner.bot_name for partner in context.partners]
    return own_words(choice.text("text"), context.persona.bot_name, others)


def _seqs(posts: Sequence[Entry], answer: Answer) -> list[int]:
    """Return the chosen posts; numbers that were not shown are passed over beside right ones."""
    answer.only("posts")
    numbers = answer.numbers("posts")
    shown = {number: post.seq for number, post in enumerate(posts[:MOST_OFFERED], start=1)}
    seqs = list(dict.fromkeys(shown[number] for number in numbers if number in shown))
    if numbers and not seqs:
        raise UnusableAnswer(Unusable.UNKNOWN_ID)
    return seqs


def _offered(shown: Sequence[T], number: int) -> T:
    if not 1 <= number <= min(len(shown), MOST_OFFERED):
        raise UnusableAnswer(Unusable.UNKNOWN_ID)
    return shown[number - 1]
