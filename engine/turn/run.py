"""A turn from its view to its last hand-in: the phases in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.effects import Effect, TakeNotice, TurnOutcome
from engine.phases.activate import Activated, activate
from engine.phases.discover import discover
from engine.phases.post import chance, is_due, post
from engine.phases.remember import remember
from engine.phases.reply import Task, Unfinished, reply, tasks
from engine.phases.scan import Scanned, look, scan

if TYPE_CHECKING:
    from engine.core.standing import Work
    from engine.phases.scene import Scene
    from engine.turn.log import TurnLog


async def run_turn(scene: Scene, log: TurnLog, work: tuple[Work, ...]) -> None:
    """Go through the phases; hand in together what is known at one moment.

    The last hand-in carries the end of the turn. What a phase raises leaves here, with everything
    before it handed in; the loop then ends the turn.
    """
    todo = await _notice(scene, log, work)
    may_post = not scene.rules.draining and is_due(scene)
    answered = await _reply(scene, log, todo) if todo else ()
    on_offer = chance(scene) if may_post else None
    if on_offer is None:
        await log.hand_in(answered, ends=TurnOutcome.WORKED)
        return
    if answered:
        await log.hand_in(answered)
        on_offer = chance(scene)
    did_more = log.has_kept or bool(answered) or log.record.n_llm_calls > 0
    posted = () if on_offer is None else await post(scene, on_offer)
    ends = TurnOutcome.WORKED if did_more or len(posted) != 1 else TurnOutcome.SKIPPED
    await log.hand_in(posted, ends=ends)


async def _notice(scene: Scene, log: TurnLog, work: tuple[Work, ...]) -> tuple[Task, ...]:
    """Remember, discover, scan and activate; return what is to be answered.

    Scan and activate share one view, and bank, invitations and cursor are one effect: handed in
    at once if a call was made for it. Channels are joined before that view: its cursor would pass
    over what was said there.
    """
    draining = scene.rules.draining
    known: tuple[Effect, ...] = await remember(scene)
    if not draining:
        known = (*known, *discover(scene))
    if known:  # what was paid for stays, whatever becomes of the scan
        log.keep(known)
        await log.hand_in(())
    if draining:
        return tasks(scene, ())
    seen = look(scene, due="scan" in work)
    activated = activate(scene)
    todo = tasks(scene, activated.taken)
    log.keep(_noticed(scene, await scan(scene, seen), activated))
    if log.owes_calls:
        await log.hand_in(())
    return todo


def _noticed(scene: Scene, scanned: Scanned, activated: Activated) -> tuple[TakeNotice, ...]:
    notice = TakeNotice(
        agent=scene.agent,
        cursor=scanned.cursor,
        keep=scanned.keep,
        drop=scanned.drop,
        dealt=activated.dealt,
    )
    return () if notice == TakeNotice(agent=scene.agent) else (notice,)


async def _reply(scene: Scene, log: TurnLog, todo: tuple[Task, ...]) -> tuple[Effect, ...]:
    """Return the answers; if some failed, hand in the others before the failure goes on."""
    try:
        return await reply(scene, todo)
    except Unfinished as unfinished:
        if unfinished.effects:
            await log.hand_in(unfinished.effects)
        raise unfinished.cause from unfinished
