"""What follows when the database itself refused an effect: it must not be paid for again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.effects import Dealt, Effect, Miss, Post, Reply, TakeNotice

if TYPE_CHECKING:
    from engine.core.world import World


def aftermath(world: World, effect: Effect) -> tuple[Effect, ...]:
    """Return what to commit in place of a message that cannot be stored.

    An owed answer counts as unusable; a post or an invitation that was to be answered is settled.
    """
    match effect:
        case Reply():
            thread = world.threads.get(effect.root)
            if thread is not None and thread.side(effect.agent) is not None:
                return (Miss(agent=effect.agent, root=effect.root, cycle=thread.cycle),)
            invited = world.desk(effect.agent).invitations
            dealt = tuple(
                Dealt(message=one.message, reason="storage")
                for one in invited
                if one.root == effect.root
            )
            return (TakeNotice(agent=effect.agent, drop=(effect.root,), dealt=dealt),)
        case Post(refers_to=int(message)):
            dealt = (Dealt(message=message, reason="storage"),)
            return (TakeNotice(agent=effect.agent, dealt=dealt),)
    return ()
