"""Reply: every answer the agent owes or was invited to, side by side, each claimed before its call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.core.config import EXPLORE_MESSAGES
from engine.core.effects import Dealt, Effect, Miss, MoveKind, Post, Reply, TakeNotice
from engine.core.errors import UnusableAnswer
from engine.core.mentions import says_nothing, strip_mentions
from engine.core.participation import debts, opposite
from engine.core.records import Invitation, InvitationKind
from engine.phases.look_up import look_up
from engine.phases.repeats import RECENT, repeats
from engine.ports.llm import LlmPhase, Move, ReplyContext, Stage, Tier, Written
from engine.ports.store import Wanted

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from engine.core.records import Root, Thread
    from engine.phases.scene import Scene
    from engine.ports.store import StoredMessage, Texts

#: A prompt shows the root and at most this many of the newest answers.
HISTORY = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One answer to write, as fixed at the view: what it answers and up to where it has read."""

    root: Root
    thread: Thread | None
    invitation: Invitation | None
    ordinal: int


def tasks(scene: Scene, invitations: tuple[Invitation, ...]) -> tuple[Task, ...]:
    """Fix, in one step, what is to be answered: claimed debts first, then the invitations."""
    world = scene.world
    owed = [
        Task(
            root=world.roots[thread.root],
            thread=thread,
            invitation=None,
            ordinal=world.roots[thread.root].n_messages,
        )
        for thread in debts(world, scene.agent)
        if scene.rules.claims.take_debt(scene.agent, thread.root)
    ]
    invited = [
        Task(
            root=world.roots[invitation.root],
            thread=world.threads.get(invitation.root),
            invitation=invitation,
            ordinal=world.roots[invitation.root].n_messages,
        )
        for invitation in invitations
        if invitation.root in world.roots
    ]
    return (*owed, *invited)


async def reply(scene: Scene, todo: tuple[Task, ...]) -> tuple[Effect, ...]:
    """Write all answers at the same time and return their effects in the order of `todo`.

    One that fails never takes the others with it: what they wrote is returned by `Unfinished`.
    """
    texts = await scene.store.read(
        Wanted(
            agent=scene.agent,
            histories=tuple((task.root.seq, task.ordinal) for task in todo),
            newest=HISTORY,
            memories=tuple(
                dict.fromkeys((None, *(scene.segment(task.root.channel) for task in todo)))
            ),
            n_recent=RECENT,
        )
    )
    drafts = await _drafts([_answer(scene, task, texts) for task in todo])
    effects: list[Effect] = []
    failures: list[BaseException] = []
    for task, draft in zip(todo, drafts, strict=True):
        if isinstance(draft, BaseException):
            failures.append(draft)
        elif isinstance(draft, Post | Reply) and repeats(
            draft.text, (*texts.recent, *scene.written)
        ):
            scene.refused.append("repeats")
            effects.append(_given_up(scene, task))
        else:
            effects.append(draft)
            if isinstance(draft, Post | Reply):
                scene.written.append(draft.text)
    if failures:
        raise Unfinished(tuple(effects), failures[0]) from failures[0]
    return tuple(effects)


async def _drafts(writing: list[Coroutine[None, None, Effect]]) -> list[Effect | BaseException]:
    """Return what each came to; the one of most turns needs no task of its own."""
    if len(writing) > 1:
        return await asyncio.gather(*writing, return_exceptions=True)
    try:
        return [await writing[0]]
    except Exception as error:  # noqa: BLE001 (whatever failed, the others' answers are handed in)
        return [error]


class Unfinished(Exception):
    """Some answers failed; `effects` are those that did not, `cause` is the first failure."""

    def __init__(self, effects: tuple[Effect, ...], cause: BaseException) -> None:
        super().__init__(str(cause))
        self.effects = effects
        self.cause = cause


async def _answer(scene: Scene, task: Task, texts: Texts) -> Effect:
    context = _context(scene, task, texts)
    try:
        decision = await scene.mind.ask(
            LlmPhase.REPLY,
            Tier.LARGE,
            context,
            thread=task.root.seq,
            look_up=partial(look_up, scene),
        )
    except UnusableAnswer as error:
        scene.refused.append(f"unusable_{error.reason}")
        return _given_up(scene, task)
    assert isinstance(decision, Written)
    if _names_only(scene, decision.text):
        scene.refused.append("unusable_empty")
        return _given_up(scene, task)
    if decision.move not in context.moves:
        scene.refused.append("unusable_move")
        return _given_up(scene, task)
    return _effect(scene, task, decision)


def _names_only(scene: Scene, text: str) -> bool:
    """Tell whether a text says nothing once the names are gone that its author may not call."""
    return says_nothing(strip_mentions(text, scene.world.handles, keep=lambda _: False)[0])


def _given_up(scene: Scene, task: Task) -> Effect:
    """A debt counts its unusable answers; an invitation is settled by the first."""
    if task.invitation is None:
        assert task.thread is not None  # debts lie in open threads
        return Miss(agent=scene.agent, root=task.root.seq, cycle=task.thread.cycle)
    dealt = Dealt(message=task.invitation.message, reason="unusable")
    return TakeNotice(agent=scene.agent, dealt=(dealt,))


def _effect(scene: Scene, task: Task, decision: Written) -> Effect:
    if task.invitation is not None and task.invitation.kind is InvitationKind.REFERENCE:
        return Post(
            agent=scene.agent,
            channel=task.root.channel,
            text=decision.text,
            refers_to=task.invitation.message,
        )
    return Reply(
        agent=scene.agent,
        root=task.root.seq,
        text=decision.text,
        answers_ordinal=task.ordinal,
        move=MoveKind(decision.move.value),
    )


def _context(scene: Scene, task: Task, texts: Texts) -> ReplyContext:
    shown = texts.histories[task.root.seq]
    partner = _partner(scene, task)
    number = _message_number(task)
    stage = _stage(number, scene.rules.config.thread_messages)
    summary = _summary(scene, task, shown)
    return ReplyContext(
        persona=scene.persona(),
        memory=scene.memory(texts, scene.segment(task.root.channel)),
        partner=None if partner is None else scene.profile(partner),
        history=tuple(scene.entry(message) for message in shown),
        message_number=number,
        stage=stage,
        moves=_moves(stage, has_summary=summary is not None, has_partner=partner is not None),
        summary=None if summary is None else scene.entry(summary),
        guidance="" if task.thread is None else task.thread.guidance,
        n_left_out=max(task.ordinal - len(shown), 0),
    )


def _partner(scene: Scene, task: Task) -> int | None:
    if task.invitation is not None and task.invitation.kind is InvitationKind.REFERENCE:
        return None
    known = task.thread
    if known is not None and known.side(scene.agent) is not None:
        other = known.other(scene.agent)
    else:
        other = opposite(task.root, scene.agent)
    return other if other in scene.world.agents else None


def _message_number(task: Task) -> int:
    """Return which of the agents' messages of the cycle this answer is."""
    if task.thread is not None:
        return task.thread.n_agent_messages + 1
    return 1 if task.root.author is None else 2


def _stage(number: int, thread_messages: int) -> Stage:
    if number >= thread_messages:
        return Stage.CONCLUDE
    return Stage.EXPLORE if number <= EXPLORE_MESSAGES else Stage.DECIDE


def _moves(stage: Stage, *, has_summary: bool, has_partner: bool) -> tuple[Move, ...]:
    """Return what the answer may do: towards a person it can only go on."""
    if not has_partner:
        return (Move.CONTINUE,)
    accept = (Move.ACCEPT,) if has_summary else ()
    match stage:
        case Stage.EXPLORE:
            return (Move.CONTINUE, *accept, Move.DECLINE)
        case Stage.DECIDE:
            return (Move.CONTINUE, Move.PROPOSE, *accept, Move.DECLINE)
        case Stage.CONCLUDE:
            return (Move.PROPOSE, *accept, Move.DECLINE)


def _summary(scene: Scene, task: Task, shown: tuple[StoredMessage, ...]) -> StoredMessage | None:
    """Return the other side's summary that waits for a yes or no."""
    thread = task.thread
    if thread is None or thread.summary_by in {None, scene.agent}:
        return None
    return next((message for message in shown if message.seq == thread.summary_seq), None)
