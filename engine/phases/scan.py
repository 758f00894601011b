"""Scan: new permitted roots, full text, one small call; the chosen go into the bank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.config import BANK_SIZE, SCAN_SIZE
from engine.core.errors import UnusableAnswer
from engine.ports.llm import Chosen, LlmPhase, PruneContext, ScanContext, Tier
from engine.ports.store import Wanted

if TYPE_CHECKING:
    from engine.core.records import Root
    from engine.phases.scene import Scene
    from engine.ports.llm import Entry
    from engine.ports.store import Texts

#: Together the texts of a scan have at most this many characters (some 10,000 tokens).
SCAN_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The roots that a scan will read, and the `seq` up to which nothing else is unread."""

    roots: tuple[Root, ...]
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan changes: the new cursor, roots to keep and banked ones to drop."""

    cursor: int | None
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


def look(scene: Scene, *, due: bool) -> Look:
    """Fix, in one step, what is to be read now.

    With nothing to read the cursor moves all the same, so that what the gate kept back is counted
    once; posts that are not ripe yet hold it.
    """
    unread = scene.world.unread(scene.agent, most=SCAN_SIZE)
    if unread and not due:
        return Look(roots=(), upto=unread[0].seq - 1)
    whole = len(unread) < SCAN_SIZE
    upto = scene.world.last_seq if whole else unread[-1].seq
    return Look(roots=tuple(unread), upto=upto)


async def scan(scene: Scene, seen: Look) -> Scanned:
    """Return what the look came to. If the call fails, what raised it leaves the cursor alone."""
    cursor = scene.world.state(scene.agent).cursor
    if not seen.roots:
        _count_kept_back(scene, cursor, seen.upto)
        return Scanned(cursor=seen.upto if seen.upto > cursor else None)
    texts = await scene.store.read(
        Wanted(
            agent=scene.agent,
            messages=tuple(root.seq for root in seen.roots),
            memories=(None,),
        )
    )
    posts = _within_budget(scene, texts)
    upto = seen.upto if len(posts) == len(seen.roots) else posts[-1].seq
    try:
        chosen = await _choose(scene, posts, memory=texts.memories[None])
    except UnusableAnswer as error:
        # What cannot be read is not read twice: the posts count as seen, and the loss as counted.
        scene.refused.append(f"unusable_{error.reason}")
        chosen = ()
    bank = scene.world.state(scene.agent).bank
    wanted = (*bank, *chosen)
    kept = frozenset(wanted) if len(wanted) <= BANK_SIZE else await _prune(scene, wanted)
    # Last: after a call that fails the next turn sees all of it again, and counts it then.
    _count_kept_back(scene, cursor, upto)
    return Scanned(
        cursor=upto,
        keep=tuple(seq for seq in chosen if seq in kept),
        drop=tuple(seq for seq in bank if seq not in kept),
    )


def _count_kept_back(scene: Scene, cursor: int, upto: int) -> None:
    scene.n_gate_filtered += scene.world.n_kept_back(scene.agent, cursor, upto)


def _within_budget(scene: Scene, texts: Texts) -> tuple[Entry, ...]:
    """Return the posts with their texts, as many as the budget holds, at least one."""
    posts: list[Entry] = []
    n_characters = 0
    for message in texts.messages:
        n_characters += len(message.text)
        if posts and n_characters > SCAN_CHARACTERS:
            break
        posts.append(scene.entry(message))
    return tuple(posts)


async def _choose(scene: Scene, posts: tuple[Entry, ...], *, memory: str) -> tuple[int, ...]:
    """Ask which posts deserve an answer; only offered ones count."""
    authors = {
        root.author: None
        for root in (scene.world.roots.get(post.seq) for post in posts)
        if root is not None and root.author is not None and root.author in scene.world.agents
    }
    context = ScanContext(
        persona=scene.persona(),
        memory=memory,
        posts=posts,
        authors=tuple(scene.profile(author) for author in authors),
    )
    decision = await scene.mind.ask(LlmPhase.SCAN, Tier.SMALL, context)
    assert isinstance(decision, Chosen)
    offered = {post.seq for post in posts}
    return tuple(seq for seq in dict.fromkeys(decision.seqs) if seq in offered)


async def _prune(scene: Scene, bank: tuple[int, ...]) -> frozenset[int]:
    """Return the posts that stay in a bank over its size: the chosen ones, else the newest."""
    texts = await scene.store.read(Wanted(agent=scene.agent, messages=bank))
    context = PruneContext(
        persona=scene.persona(),
        posts=tuple(scene.entry(message) for message in texts.messages),
        n_keep=BANK_SIZE,
    )
    newest = frozenset(sorted(bank)[-BANK_SIZE:])
    try:
        decision = await scene.mind.ask(LlmPhase.PRUNE, Tier.SMALL, context)
    except UnusableAnswer as error:
        scene.refused.append(f"unusable_{error.reason}")
        return newest
    assert isinstance(decision, Chosen)
    kept = frozenset(seq for seq in decision.seqs[:BANK_SIZE] if seq in bank)
    return kept or newest
