"""What a phase is given: the facts as its view fixed them, texts on request, and a model to ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from engine.core.records import Visibility
from engine.ports.llm import Entry, Persona, Profile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from engine.core.participation import Rules
    from engine.core.records import AgentSpec
    from engine.core.world import World
    from engine.ports.clock import Clock
    from engine.ports.llm import Context, Decision, Found, LlmPhase, LookUp, Tier
    from engine.ports.store import Store, StoredMessage, Texts

#: A person whose name nobody gave.
SOMEBODY = "a person"
#: A bot that no agent of the simulation stands for.
FOREIGN_BOT = "another bot"


class Mind(Protocol):
    """Asks the model on behalf of one turn: reserved, limited, retried and recorded."""

    async def ask(
        self,
        phase: LlmPhase,
        tier: Tier,
        context: Context,
        *,
        thread: int | None = None,
        look_up: Callable[[LookUp], Awaitable[Found]] | None = None,
    ) -> Decision:
        """Return the decision; raises `UnusableAnswer`, or what ends the turn.

        With `look_up` the model may look things up first, in a few rounds.
        """
        ...


@dataclass(slots=True, kw_only=True)
class Scene:
    """One turn of `agent`, selection `number`.

    `world` may change at every await: what a phase acts on it takes at once. `refused` collects
    the reasons of drafts that were given up before they were handed in, `written` the turn's own
    texts, `n_gate_filtered` the entries that the gate kept from this turn.
    """

    agent: int
    number: int
    seed: int
    world: World
    rules: Rules
    store: Store
    mind: Mind
    clock: Clock
    refused: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    n_gate_filtered: int = 0

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def spec(self) -> AgentSpec:
        return self.world.agents[self.agent]

    def persona(self) -> Persona:
        spec = self.spec
        return Persona(
            slug=spec.slug,
            bot_name=spec.bot_name,
            represents=spec.represents,
            public_profile=spec.public_profile,
            private_instructions=spec.private_instructions,
            house_rules=self.rules.config.house_rules,
        )

    def profile(self, agent: int) -> Profile:
        spec = self.world.agents[agent]
        return Profile(
            slug=spec.slug,
            bot_name=spec.bot_name,
            represents=spec.represents,
            public_profile=spec.public_profile,
        )

    def entry(self, message: StoredMessage) -> Entry:
        """Return a stored message as it is shown to a model."""
        spec = None if message.author is None else self.world.agents.get(message.author)
        if spec is not None:
            author = spec.bot_name
        else:
            author = FOREIGN_BOT if message.is_bot else message.person or SOMEBODY
        return Entry(
            seq=message.seq,
            channel=self.world.channels[message.channel].name,
            author=author,
            is_bot=message.is_bot,
            text=message.text,
            at=message.at,
        )

    def segment(self, channel: int) -> int | None:
        """Return the memory segment for a channel: None for every public one."""
        private = self.world.channels[channel].visibility is Visibility.PRIVATE
        return channel if private else None

    def memory(self, texts: Texts, segment: int | None) -> str:
        """Return what the agent remembers: the public segment, and in a private channel its own."""
        segments = (None,) if segment is None else (None, segment)
        return "\n\n".join(texts.memories[one] for one in segments if texts.memories[one])
