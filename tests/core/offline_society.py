"""A tiny society for the tests of the offline LLM: rosters read, contexts built, talks run."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backends.clock import VirtualClock
from engine.backends.llm.offline import OfflineLlm
from engine.ports.llm import (
    AnswerPost,
    BankedPost,
    ChannelInfo,
    Chosen,
    Context,
    Decision,
    Entry,
    LlmAnswer,
    LlmPhase,
    LlmRequest,
    LookUps,
    Move,
    NewRoot,
    Persona,
    PostContext,
    Profile,
    ReplyContext,
    ScanContext,
    SkipPost,
    Stage,
    Tier,
    Written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO_ROSTER = Path(__file__).parents[2] / "engine" / "demo" / "roster"
AT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
N_MESSAGES = 12
N_EXPLORING = 4


def llm(seed: int = 1) -> OfflineLlm:
    return OfflineLlm(seed, VirtualClock(AT))


def persona(slug: str, public: str = "", private: str = "", represents: str = "") -> Persona:
    return Persona(
        slug=slug,
        bot_name=f"{slug.title().replace('-', '')}Bot",
        represents=represents or f"{slug.title()} House",
        public_profile=public,
        private_instructions=private,
        house_rules="",
    )


def profile_of(who: Persona) -> Profile:
    return Profile(
        slug=who.slug,
        bot_name=who.bot_name,
        represents=who.represents,
        public_profile=who.public_profile,
    )


def entry(seq: int, author: str, text: str, *, is_bot: bool = True) -> Entry:
    return Entry(seq=seq, channel="general", author=author, is_bot=is_bot, text=text, at=AT)


def moves_at(stage: Stage, summary: Entry | None) -> tuple[Move, ...]:
    moves = [Move.PROPOSE, Move.DECLINE]
    if stage is not Stage.CONCLUDE:
        moves.insert(0, Move.CONTINUE)
    if summary is not None:
        moves.append(Move.ACCEPT)
    return tuple(moves)


def stage_at(number: int) -> Stage:
    if number >= N_MESSAGES:
        return Stage.CONCLUDE
    return Stage.EXPLORE if number <= N_EXPLORING else Stage.DECIDE


def reply_context(
    who: Persona,
    partner: Persona | None,
    history: tuple[Entry, ...],
    *,
    number: int = 2,
    summary: Entry | None = None,
    guidance: str = "",
    moves: tuple[Move, ...] | None = None,
) -> ReplyContext:
    stage = stage_at(number)
    return ReplyContext(
        persona=who,
        memory="",
        partner=profile_of(partner) if partner else None,
        history=history,
        message_number=number,
        stage=stage,
        moves=moves or moves_at(stage, summary),
        summary=summary,
        guidance=guidance,
    )


def post_context(
    who: Persona,
    *,
    partners: tuple[Persona, ...] = (),
    bank: tuple[BankedPost, ...] = (),
    channels: tuple[ChannelInfo, ...] = (ChannelInfo(name="general", topic="All the isles"),),
    recent: tuple[str, ...] = (),
    may_start_root: bool = True,
    memory: str = "",
) -> PostContext:
    return PostContext(
        persona=who,
        memory=memory,
        channels=channels,
        bank=bank,
        partners=tuple(map(profile_of, partners)),
        recent=recent,
        may_start_root=may_start_root,
    )


def scan_context(
    who: Persona, posts: tuple[Entry, ...], authors: tuple[Persona, ...] = ()
) -> ScanContext:
    return ScanContext(persona=who, memory="", posts=posts, authors=tuple(map(profile_of, authors)))


def request(
    phase: LlmPhase, context: Context, *, turn: int = 1, thread: int | None = None
) -> LlmRequest:
    return LlmRequest(
        agent=context.persona.slug,
        turn=turn,
        phase=phase,
        tier=Tier.LARGE,
        thread=thread,
        attempt=1,
        context=context,
    )


def answer(asked: LlmRequest, *, seed: int = 1) -> LlmAnswer:
    return asyncio.run(llm(seed).complete(asked))


def wrote(context: ReplyContext, *, seed: int = 1, turn: int = 1, thread: int = 1) -> Written:
    asked = request(LlmPhase.REPLY, context, turn=turn, thread=thread)
    decision = answer(asked, seed=seed).decision
    assert isinstance(decision, Written)
    return decision


def posted(
    context: PostContext, *, seed: int = 1, turn: int = 1
) -> AnswerPost | NewRoot | SkipPost:
    decision = answer(request(LlmPhase.POST, context, turn=turn), seed=seed).decision
    assert isinstance(decision, AnswerPost | NewRoot | SkipPost)
    return decision


def chosen(context: ScanContext, *, seed: int = 1, turn: int = 1) -> tuple[int, ...]:
    decision = answer(request(LlmPhase.SCAN, context, turn=turn), seed=seed).decision
    assert isinstance(decision, Chosen)
    return decision.seqs


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """A roster folder: personas by slug, cohorts of each, channels."""

    personas: dict[str, Persona]
    cohorts: dict[str, frozenset[str]]
    channels: tuple[ChannelInfo, ...]

    def mates(self, slug: str) -> tuple[Persona, ...]:
        own = self.cohorts[slug]
        return tuple(
            who
            for other, who in self.personas.items()
            if other != slug and own & self.cohorts[other]
        )

    def pairs(self) -> Iterator[tuple[Persona, Persona]]:
        for slug, who in self.personas.items():
            yield from ((who, mate) for mate in self.mates(slug) if slug < mate.slug)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def load_roster(folder: Path = DEMO_ROSTER) -> Roster:
    memberships = rows(folder / "cohorts.csv")
    return Roster(
        personas={
            row["agent_id"]: Persona(
                slug=row["agent_id"],
                bot_name=row["bot_name"],
                represents=row["represents"],
                public_profile=_text(folder / "public" / f"{row['agent_id']}.md"),
                private_instructions=_text(folder / "private" / f"{row['agent_id']}.md"),
                house_rules="",
            )
            for row in rows(folder / "agents.csv")
        },
        cohorts={
            row["agent_id"]: frozenset(
                m["cohort"] for m in memberships if m["agent_id"] == row["agent_id"]
            )
            for row in rows(folder / "agents.csv")
        },
        channels=tuple(
            {
                row["channel"]: ChannelInfo(name=row["channel"], topic=row["topic"])
                for row in rows(folder / "channels.csv")
            }.values()
        ),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Talk:
    """A finished talk: its messages and how it ended."""

    pair: tuple[Persona, Persona]
    messages: list[tuple[str, str]] = field(default_factory=list)
    outcome: str = "timeout"


@dataclass(slots=True, kw_only=True)
class Society:
    """Runs talks between two agents under the rules of a thread, all with one seed."""

    seed: int
    seq: int = 0
    turn: int = 0
    said: dict[str, list[str]] = field(default_factory=dict)

    async def ask(self, phase: LlmPhase, context: Context, thread: int | None = None) -> Decision:
        self.turn += 1
        asked = request(phase, context, turn=self.turn, thread=thread)
        decision = (await llm(self.seed).complete(asked)).decision
        assert not isinstance(decision, LookUps)
        return decision

    def say(self, who: Persona, text: str) -> Entry:
        self.seq += 1
        self.said.setdefault(who.slug, []).append(text)
        return entry(self.seq, who.bot_name, text)

    def recent(self, who: Persona) -> tuple[str, ...]:
        return tuple(self.said.get(who.slug, ())[-20:])

    async def talk(
        self, opener: Persona, other: Persona, channels: tuple[ChannelInfo, ...]
    ) -> Talk:
        """Let `opener` write a root with `other` in mind, and both talk it to its end."""
        talk = Talk(pair=(opener, other))
        context = post_context(
            opener, partners=(other,), channels=channels, recent=self.recent(opener)
        )
        root = await self.ask(LlmPhase.POST, context)
        if not isinstance(root, NewRoot):
            talk.outcome = "skipped"
            return talk
        history = [self.say(opener, root.text)]
        talk.messages.append((opener.slug, root.text))
        await self._answers(talk, history)
        return talk

    async def _answers(self, talk: Talk, history: list[Entry]) -> None:
        summary: Entry | None = None
        thread = history[0].seq
        for number in range(2, N_MESSAGES + 1):
            who, partner = talk.pair[(number - 1) % 2], talk.pair[number % 2]
            context = reply_context(who, partner, tuple(history), number=number, summary=summary)
            written = await self.ask(LlmPhase.REPLY, context, thread)
            assert isinstance(written, Written)
            assert written.move in context.moves
            history.append(self.say(who, written.text))
            talk.messages.append((who.slug, written.text))
            if written.move in {Move.ACCEPT, Move.DECLINE}:
                talk.outcome = "proposal" if written.move is Move.ACCEPT else "no_proposal"
                return
            summary = history[-1] if written.move is Move.PROPOSE else None


def all_talks(roster: Roster, seed: int) -> list[Talk]:
    """Let every pair that shares a cohort talk once in each direction."""

    async def talks() -> list[Talk]:
        society = Society(seed=seed)
        found = []
        for one, two in roster.pairs():
            found.append(await society.talk(one, two, roster.channels))
            found.append(await society.talk(two, one, roster.channels))
        return found

    return asyncio.run(talks())


def without_private(who: Persona) -> Persona:
    return replace(who, private_instructions="")
