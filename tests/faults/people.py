"""People beside a run: they write, call agents, review, edit, and move cohorts, by seeded chance."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from cohorts.models import Agent, Cohort
from cohorts.operations import save_agent, set_members
from engine import inbox
from engine.models import Channel, Memory, Message, Proposal
from engine.simulations import add_channel_members, remove_channel_members

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.models import Simulation

WHO = "Ada"


class People:
    """Each `act` is one change, as pages and commands make it; no text comes twice."""

    def __init__(self, simulation: Simulation, seed: int) -> None:
        self._simulation = simulation
        self._dice = Random(seed)
        self._n_acts = 0
        self._acts: tuple[Callable[[], object], ...] = (
            *(self._ask, self._ask, self._answer, self._answer, self._review, self._review),
            *(self._move_members, self._move_members, self._invite, self._edit, self._remind),
        )

    def act(self) -> None:
        """Do one of the things that people do."""
        self._n_acts += 1
        self._dice.choice(self._acts)()

    def _text(self, *, calls: int) -> str:
        names = [f"@{self._agent().bot_name}" for _ in range(calls)]
        return " ".join((*names, f"what do you make of matter number {self._n_acts}?"))

    def _agent(self) -> Agent:
        return self._dice.choice(list(Agent.objects.order_by("pk")))

    def _ask(self) -> None:
        channel = self._dice.choice(list(self._simulation.channels.order_by("pk")))
        inbox.write_message(channel=channel, person=WHO, text=self._text(calls=1))

    def _answer(self) -> None:
        """Say something under a root, with or without a name."""
        roots = Message.objects.filter(simulation=self._simulation, root=None)
        root = self._dice.choice(list(roots.order_by("pk"))[-20:] or [None])
        if root is not None:
            text = self._text(calls=self._dice.randint(0, 1))
            inbox.write_message(channel=root.channel, person=WHO, text=text, root=root)

    def _review(self) -> None:
        """Decide about the oldest proposal that waits."""
        waiting = Proposal.objects.filter(simulation=self._simulation, state="pending")
        proposal = waiting.order_by("pk").first()
        if proposal is not None:
            state = self._dice.choice(["accepted", "declined", "revised"])
            note = f"After {self._n_acts} thoughts."
            inbox.review_proposal(
                proposal, version=proposal.version, state=state, person=WHO, note=note
            )

    def _move_members(self) -> None:
        """Let an agent come into a cohort, or leave it."""
        cohort = self._dice.choice(list(Cohort.objects.order_by("pk")))
        agent = self._agent()
        members = Agent.objects.filter(memberships__cohort=cohort)
        set_members(cohort, {*members} ^ {agent}, who=WHO)

    def _invite(self) -> None:
        """Let an agent into a private channel, or out of it."""
        channel = Channel.objects.filter(simulation=self._simulation, visibility="private").get()
        agent = self._agent()
        if not add_channel_members(channel, [agent], who=WHO):
            remove_channel_members(channel, [agent], who=WHO)

    def _edit(self) -> None:
        agent = self._agent()
        agent.public_profile = f"{agent.public_profile} Number {self._n_acts} is new."
        save_agent(agent, who=WHO)

    def _remind(self) -> None:
        """Edit what an agent remembers, unless it does so itself at this moment."""
        agent = self._agent()
        segment = Memory.objects.filter(
            simulation=self._simulation, agent=agent, channel__isnull=True
        )
        with suppress(inbox.RefusedChangeError):
            inbox.edit_memory(
                simulation=self._simulation,
                agent=agent,
                channel=None,
                version=segment.count(),
                text=f"Remember matter number {self._n_acts}.",
                person=WHO,
            )
