"""Writes the agents of the database as a roster folder, which `cohorts.roster` reads again."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from cohorts.models import Agent, Membership
from cohorts.tables import disarmed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

TABLE_COLUMNS: Final = (
    "agent_id",
    "bot_name",
    "represents",
    "status",
    "public_profile",
    "private_instructions",
    "cohorts",
)
"""The columns of the one table that holds everything of an agent but its limits."""


def write_roster(folder: Path) -> None:
    """Write agents, profiles and cohorts into an empty folder; retired agents stay behind."""
    agents = list(_agents())
    for kind in ("public", "private"):
        (folder / kind).mkdir(parents=True)
    for agent in agents:
        (folder / "public" / f"{agent.slug}.md").write_text(f"{agent.public_profile}\n")
        (folder / "private" / f"{agent.slug}.md").write_text(f"{agent.private_instructions}\n")
    _write(
        folder / "agents.csv",
        TABLE_COLUMNS[:4],
        ((agent.slug, agent.bot_name, agent.represents, agent.status) for agent in agents),
    )
    _write(folder / "cohorts.csv", ("cohort", "description", "agent_id"), _memberships())


def table_rows() -> Iterator[tuple[str, ...]]:
    """Yield the row of each agent, by the columns of `TABLE_COLUMNS`."""
    cohorts: dict[str, list[str]] = {}
    for cohort, _, slug in _memberships():
        cohorts.setdefault(slug, []).append(cohort)
    for agent in _agents():
        yield (
            agent.slug,
            agent.bot_name,
            agent.represents,
            agent.status,
            agent.public_profile,
            agent.private_instructions,
            "; ".join(cohorts.get(agent.slug, [])),
        )


def _agents() -> Iterable[Agent]:
    return Agent.objects.exclude(status=Agent.Status.RETIRED).order_by("slug").iterator(500)


def _memberships() -> Iterator[tuple[str, str, str]]:
    rows = Membership.objects.exclude(agent__status=Agent.Status.RETIRED)
    yield from rows.order_by("cohort__name", "agent__slug").values_list(
        "cohort__name", "cohort__description", "agent__slug"
    )


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows([disarmed(cell) for cell in row] for row in rows)
