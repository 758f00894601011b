"""Activate: which invitations the agent takes up now. The gate first, then participation, then
seats; what does not fit waits as a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.effects import Dealt
from engine.core.participation import invitation_refusal
from engine.core.records import InvitationKind

if TYPE_CHECKING:
    from engine.core.records import Invitation
    from engine.phases.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """Invitations to answer in this turn, each with its claim, and those settled without."""

    taken: tuple[Invitation, ...]
    dealt: tuple[Dealt, ...]


def activate(scene: Scene) -> Activated:
    """Sort the pending invitations in one step; the taken ones hold a seat from here on."""
    taken: list[Invitation] = []
    dealt: list[Dealt] = []
    for invitation in scene.world.desk(scene.agent).invitations:
        refusal = invitation_refusal(scene.world, invitation, scene.now, scene.rules)
        if refusal is None:
            if _claim(scene, invitation):
                taken.append(invitation)
        elif not refusal.passes:
            dealt.append(Dealt(message=invitation.message, reason=refusal.reason))
    return Activated(taken=tuple(taken), dealt=tuple(dealt))


def _claim(scene: Scene, invitation: Invitation) -> bool:
    """Claim the answer and, for one that opens a thread, the agent's own seat."""
    claims = scene.rules.claims
    if invitation.kind is InvitationKind.REFERENCE:
        return claims.take_debt(scene.agent, invitation.message)
    if not claims.take_debt(scene.agent, invitation.root):
        return False  # two invitations to one root: one answer serves both
    claims.take_seat(scene.agent, invitation.root)
    return True
