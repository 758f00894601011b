"""The law of rebuilding on real tables: the same random run as in memory, over the database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, TypeVar

import pytest
from django.core.management.color import no_style
from django.db import connection, connections

from cohorts import operations
from cohorts.models import Agent, Cohort
from engine import simulations
from engine.core.effects import Verdict
from engine.models import Channel, Memory, Message, Proposal
from engine.store.database import DjangoStore
from tests.contract.groups import AGENTS
from tests.runtime.rebuilding import SETTINGS, random_run
from tests.runtime.society import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.ports.store import Beat, Store
    from tests.contract.site import DjangoSite

pytestmark = pytest.mark.timeout(300)

T = TypeVar("T")


class BeatenStore(DjangoStore):
    """A store whose pulse has a thread of its own, as in a run."""

    pool: ThreadPoolExecutor

    def beat(self) -> Beat:
        return self.pool.submit(super().beat).result()


class DatabaseGround:
    """The site's hands on real rows; each act is one on another thread, as of another process."""

    def __init__(self, site: DjangoSite, store: BeatenStore, pool: ThreadPoolExecutor) -> None:
        self.store: Store = store
        self._site = site
        self._pool = pool

    def _act(self, act: Callable[[], T]) -> T:
        return self._pool.submit(act).result()

    def write(self, dice: Random) -> None:
        """Write a root or an answer, with or without a name in it."""

        def act() -> None:
            roots = list(Message.objects.filter(root=None, seq__isnull=False).order_by("seq"))
            root = dice.choice([None, *roots])
            call = f"@{dice.choice(_handles())} " * dice.randint(0, 2)
            self._site.write_message(
                channel=dice.choice([1, 2]) if root is None else root.channel_id,
                text=f"{call}what of number {dice.random()}?",
                root=None if root is None else root.seq,
            )

        self._act(act)

    def review(self, dice: Random) -> None:
        """Review a proposal that waits, if there is one."""

        def act() -> None:
            waiting = list(Proposal.objects.filter(state="pending").order_by("pk"))
            if waiting:
                row = dice.choice(waiting)
                verdict = dice.choice(list(Verdict))
                self._site.review(
                    root=row.thread.root_seq, cycle=row.cycle, verdict=verdict, note="goats"
                )

        self._act(act)

    def edit_agent(self, dice: Random) -> None:
        """Pause, wake, retire, rename or limit an agent, or let one join or leave the roster."""

        def act() -> None:
            agent = Agent.objects.get(pk=dice.choice(AGENTS))
            match dice.randint(0, 4):
                case 0:
                    agent.status = dice.choice(["active", "active", "active", "paused", "retired"])
                case 1:
                    agent.bot_name = f"Bot{agent.pk}x{dice.randint(1, 99)}"
                case 2:
                    agent.max_calls = dice.choice([None, 3])
                case 3:
                    agent.public_profile = f"All is new: {dice.random()}."
                case _:
                    number = Agent.objects.count() + 1
                    agent = Agent(slug=f"joiner-{number}", bot_name=f"Joiner{number}")
            operations.save_agent(agent, who="Ada")

        self._act(act)

    def edit_channel(self, dice: Random) -> None:
        """Give a channel another topic."""
        self._act(lambda: self._site.rename_topic(dice.choice([1, 2]), f"{dice.random()}"))

    def edit_memory(self, dice: Random) -> None:
        """Write another text into a memory."""

        def act() -> None:
            agent = dice.choice(AGENTS)
            known = Memory.objects.filter(agent=agent).values_list("channel", flat=True)
            channel = dice.choice([None, *sorted({one for one in known if one is not None})])
            self._site.edit_memory(agent=agent, channel=channel, text="so it was")

        self._act(act)

    def change_cohorts(self, dice: Random) -> None:
        """Shuffle a cohort, or the members of the private channel."""

        def act() -> None:
            agents = list(Agent.objects.filter(pk__in=AGENTS).order_by("pk"))
            some = dice.sample(agents, dice.randint(0, 3))
            if dice.random() < 0.3:
                room = Channel.objects.get(pk=2)
                simulations.remove_channel_members(room, agents, who="Ada")
                simulations.add_channel_members(room, some, who="Ada")
            else:
                cohort = Cohort.objects.get(name=dice.choice(["east", "west"]))
                operations.set_members(cohort, some, who="Ada")

        self._act(act)


def _handles() -> list[str]:
    return list(Agent.objects.order_by("pk").values_list("bot_name", flat=True))


@pytest.fixture
def ground(django_site: DjangoSite) -> Iterator[DatabaseGround]:
    with connection.cursor() as cursor:  # the site named its agents' keys itself
        for statement in connection.ops.sequence_reset_sql(no_style(), [Agent]):
            cursor.execute(statement)
    for name, numbers in (("east", (1, 2)), ("west", (2, 3))):
        cohort = operations.create_cohort(name, who="Ada")
        operations.add_members(cohort, Agent.objects.filter(pk__in=numbers), who="Ada")
    plain = django_site.open_store()
    store = BeatenStore(
        simulation_id=django_site.simulation.pk,
        run_id=django_site.run.pk,
        token=plain._writer._token,
        policy="open",
    )
    django_site.stores.append(store)
    with ThreadPoolExecutor(1) as pool:
        store.pool = pool
        yield DatabaseGround(django_site, store, pool)
        pool.submit(connections.close_all).result()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_world_rebuilt_from_the_database_equals_the_live_one(
    ground: DatabaseGround, seed: int
) -> None:
    checked = in_virtual_time(random_run(ground, seed, replace(SETTINGS, max_turns=50)))
    assert checked.differing == {}
    assert checked.n_checked > 20
