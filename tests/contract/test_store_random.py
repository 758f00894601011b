"""Random lives of a simulation: both stores say the same to every group and load the same world."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.core.errors import StoreError
from engine.core.group import NewMemory, NewProposal
from engine.core.records import (
    AgentState,
    Invitation,
    InvitationKind,
    InvitationState,
    Memory,
    Outcome,
    Side,
)
from engine.ports.store import Wanted
from tests.contract import groups
from tests.contract.site import DjangoSite, MemorySite, run

if TYPE_CHECKING:
    from engine.core.group import Group, NewMessage, TakenIn
    from engine.ports.store import Loaded, Store

N_GROUPS = 30
#: One row in so many is drawn without a look at what is there already.
WILD = 40


class Life:
    """Draws groups that mostly keep the rules; what is wrong with them the stores have to say."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.heights: dict[int, int] = {}
        self.last_seq = 0

    def draw(self, number: int, waiting: list[int]) -> Group:
        """Return a group of a few rows of every kind."""
        group = groups.group(number, seconds=60.0 * number)
        for _ in range(self.random.randint(1, 3)):
            self._say(group)
        if waiting and self.random.random() < 0.5:
            group.taken_in.append(groups.taken_in(waiting.pop(0), self._next_seq()))
        if self.heights:
            self._talk(group)
            self._note(group)
        return group

    def keep(self, group: Group) -> None:
        """Remember what was stored."""
        placed: list[NewMessage | TakenIn] = [*group.messages, *group.taken_in]
        for message in placed:
            top = message.seq if message.root is None else message.root
            self.heights[top] = max(message.ordinal, self.heights.get(top, 0))
            self.last_seq = max(self.last_seq, message.seq)

    def _wild(self) -> bool:
        return self.random.randrange(WILD) == 0

    def _next_seq(self) -> int:
        if self._wild() and self.heights:
            return self.random.choice(sorted(self.heights))
        self.last_seq += 1
        return self.last_seq

    def _agent(self) -> int:
        return 99 if self._wild() else self.random.choice(groups.AGENTS)

    def _root(self) -> int:
        if self._wild():
            return self.random.randint(1, 50)
        return self.random.choice(sorted(self.heights))

    def _say(self, group: Group) -> None:
        root = None if not self.heights or self.random.random() < 0.4 else self._root()
        ordinal = 1
        if root is not None:
            n_new = sum(message.root == root for message in group.messages)
            ordinal = 2 if self._wild() else self.heights.get(root, 1) + 1 + n_new
        said = groups.message(self._next_seq(), author=self._agent(), root=root, ordinal=ordinal)
        group.messages.append(said)

    def _talk(self, group: Group) -> None:
        for _ in range(self.random.randint(0, 2)):
            opener, partner = self.random.sample((*groups.AGENTS, None), 2)
            if opener is None:
                continue
            root, cycle = self._root(), self.random.randint(1, 9)
            thread = groups.thread(root, opener, partner, cycle=cycle)
            thread = replace(thread, opener=Side(agent=opener, viewed=self.random.randint(0, 9)))
            if self.random.random() < 0.6:
                thread = groups.closed(thread, self.last_seq, self.random.choice(list(Outcome)))
                group.decisions.append(groups.decision(thread))
            group.threads.append(thread)
            if partner is not None and thread.outcome is Outcome.PROPOSAL:
                proposal = NewProposal(
                    root=root,
                    cycle=cycle,
                    agents=(opener, partner),
                    summary_seq=self._root(),
                    at=groups.at(root),
                )
                group.proposals.append(proposal)

    def _note(self, group: Group) -> None:
        agent = self._agent()
        root = self._root()
        state = self.random.choice(list(InvitationState))
        group.invitations.append(
            Invitation(
                agent=agent,
                message=root,
                root=root,
                kind=self.random.choice(list(InvitationKind)),
                by_person=self.random.random() < 0.5,
                state=state,
            )
        )
        bank = tuple(sorted(self.heights))[:2]
        group.states.append((agent, AgentState(last_selected=root, cursor=root, bank=bank)))
        segment = self.random.choice([None, 2])
        memory = Memory(agent=agent, channel=segment, version=group.number)
        if self.random.random() < 0.3:
            group.memories.append(NewMemory(memory=memory, text=f"I know {root}."))
        group.subscriptions.append((agent, self.random.choice([1, 2])))
        group.turns.append(groups.turn(group.number, agent=agent))
        group.calls.append(groups.call(group.number, 1, agent=agent, seconds=60 * group.number))


def outcome(store: Store, group: Group) -> str:
    """Return the name of the error that a store answers a group with, empty if it stored it."""
    try:
        run(store.commit(group))
    except StoreError as error:
        return type(error).__name__
    return ""


def without_gate(loaded: Loaded, gate: object = None) -> Loaded:
    """Return what was loaded, its topology apart: its version differs by how a site was made."""
    return replace(loaded, gate=gate)  # type: ignore[arg-type]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(3))
def test_stores_agree_on_random_groups(django_site: DjangoSite, seed: int) -> None:
    twin = MemorySite()
    stores: tuple[Store, Store] = (twin.open_store(), django_site.open_store())
    life = Life(seed)
    waiting: list[int] = []
    answers: list[str] = []
    for number in range(N_GROUPS):
        if number % 5 == 0:
            ids = {site.write_message(channel=1, text="Hello") for site in (twin, django_site)}
            waiting += ids if len(ids) == 1 else ()
        group = life.draw(run(stores[0].load()).commit_no + 1, waiting)
        said, also_said = (outcome(store, group) for store in stores)
        assert said == also_said
        answers.append(said)
        if not said:
            life.keep(group)
        loaded, also_loaded = (without_gate(run(store.load())) for store in stores)
        assert loaded == also_loaded
    assert answers.count("") > N_GROUPS / 4
    assert answers.count("RowRefused") > 1
    assert_same_reads(*stores)


def assert_same_reads(one: Store, other: Store) -> None:
    """See both stores answer every read alike, also a driver that comes later."""
    loaded = run(one.load())
    for seq in range(1, loaded.last_seq + 1):
        assert_same(one, other, Wanted(agent=1, messages=(seq,)))
    for root in loaded.roots:
        place = (root.seq, root.n_messages)
        assert_same(one, other, Wanted(agent=1, histories=(place,), newest=3))
    for agent in groups.AGENTS:
        assert_same(one, other, Wanted(agent=agent, n_recent=5, memories=(None, 2)))
        talks = tuple(talk for who, talk in loaded.untold if who == agent)
        told, also_told = (run(store.told_talks(talks, agent=agent)) for store in (one, other))
        assert told == also_told


def assert_same(one: Store, other: Store, wanted: Wanted) -> None:
    assert run(one.read(wanted)) == run(other.read(wanted))
