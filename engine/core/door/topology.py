"""A new topology comes into force: what was kept under the old one is looked at again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.door.messages import settle_invitation
from engine.core.effects import Adopt, Committed, Rejected, Result
from engine.core.participation import may_act_on
from engine.core.records import InvitationState, Visibility

if TYPE_CHECKING:
    from engine.core.draft import Draft
    from engine.core.records import Root


def adopt(draft: Draft, effect: Adopt) -> Result:
    """Put a gate in force; an older one than the one in force is refused.

    Banked posts and invitations of authors no longer permitted go, open threads of pairs no
    longer permitted are marked and may finish, and whoever gains a mate without having anything
    to read starts at the newest post: a new membership replays nothing.
    """
    old = draft.gate
    if effect.gate.version < old.version:
        return Rejected(reason="older_topology")
    draft.gate = effect.gate
    draft.group.adopted = effect.gate
    gained = frozenset(effect.gate.gained_since(old))
    for agent in effect.gate.changed_since(old):
        if draft.agents.get(agent) is not None:
            _prune(draft, agent)
            if agent in gained:
                _skip_old_posts(draft, agent)
            draft.concern.agents[agent] = None
    _mark_grandfathered(draft)
    return Committed()


def _prune(draft: Draft, agent: int) -> None:
    state = draft.state(agent)
    bank = tuple(seq for seq in state.bank if _permitted(draft, agent, draft.roots.get(seq)))
    if bank != state.bank:
        draft.set_state(agent, replace(state, bank=bank))
    for invitation in draft.desk(agent).invitations:
        root = draft.roots.get(invitation.root)
        if not invitation.by_person and not _permitted(draft, agent, root):
            settle_invitation(
                draft, agent, invitation.message, InvitationState.REFUSED, "not_permitted"
            )


def _permitted(draft: Draft, agent: int, root: Root | None) -> bool:
    return root is not None and may_act_on(draft, agent, root)


def _skip_old_posts(draft: Draft, agent: int) -> None:
    """Move the cursor of an agent that gains somebody and has nothing permitted unread."""
    state = draft.state(agent)
    if state.cursor < draft.last_seq and not draft.world.unread(agent, most=1):
        draft.set_state(agent, replace(state, cursor=draft.last_seq))


def _mark_grandfathered(draft: Draft) -> None:
    """Mark open threads whose pair the gate no longer permits; unmark those it permits again."""
    for root in list(draft.world.threads):
        thread = draft.threads.get(root)
        if thread is None or thread.pair is None:
            continue
        private = draft.channels[thread.channel].visibility is Visibility.PRIVATE
        permitted = private or draft.gate.permits(*thread.pair)
        if permitted == (thread.grandfathered_at is None):
            continue
        marked = replace(thread, grandfathered_at=None if permitted else draft.now)
        draft.threads[root] = marked
        draft.changed_threads[root] = marked
