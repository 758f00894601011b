"""A roster folder as one value: read whole, or refused with every error by file and line.

Pure but for reading the folder; `cohorts.importer` writes what is found here to the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cohorts.names import (
    BOT_NAME_LIKE,
    CHANNEL_LIKE,
    RESERVED_BOT_NAMES,
    RESERVED_SLUGS,
    SLUG_LIKE,
    is_bot_name,
    is_channel_name,
    is_slug,
)
from cohorts.tables import Problem, Row, UnreadableError, armed, read_table, read_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

AGENTS: Final = "agents.csv"
COHORTS: Final = "cohorts.csv"
CHANNELS: Final = "channels.csv"
STATUSES: Final = ("active", "paused", "retired")
_COLUMNS: Final = {
    AGENTS: ("agent_id", "bot_name", "represents", "status"),
    COHORTS: ("cohort", "description", "agent_id"),
    CHANNELS: ("channel", "topic", "visibility", "agent_id"),
}
_REPRESENTS_LIMIT: Final = 200
_TOPIC_LIMIT: Final = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterAgent:
    """A row of agents.csv with its two profiles."""

    line: int
    slug: str
    bot_name: str
    represents: str
    status: str
    public_profile: str
    private_instructions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterCohort:
    """A cohort with its members, as agent ids in the order of the file."""

    name: str
    description: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterChannel:
    """A channel; only a private one has members."""

    line: int
    name: str
    topic: str
    is_private: bool
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Everything that a folder holds."""

    agents: tuple[RosterAgent, ...] = ()
    cohorts: tuple[RosterCohort, ...] = ()
    channels: tuple[RosterChannel, ...] = ()


@dataclass(slots=True)
class _Findings:
    """Problems as they are found, and what one row must not repeat from another."""

    problems: list[Problem] = field(default_factory=list)
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, file: str, line: int | None, text: str) -> None:
        self.problems.append(Problem(file=file, line=line, text=text))

    def is_first(self, file: str, row: Row, *columns: str) -> bool:
        """Tell whether no earlier row has the same values, ignoring case; report it otherwise."""
        key = (file, *columns, *(row[column].casefold() for column in columns))
        first = self.seen.setdefault(key, row.line)
        if first == row.line:
            return True
        values = " and ".join(f"{column} {_quoted(row[column])}" for column in columns)
        self.add(file, row.line, f"The {values} is already in line {first}: remove one of them.")
        return False


def read_roster(folder: Path) -> tuple[Roster, list[Problem]]:
    """Return the roster of a folder, and all that is wrong with it in the order of the files.

    With a problem in the list the roster is incomplete and must not be used.
    """
    if not folder.is_dir():
        return Roster(), [Problem(file=str(folder), line=None, text="There is no such folder.")]
    found = _Findings()
    tables = {AGENTS: _table(folder, AGENTS, found), COHORTS: _table(folder, COHORTS, found)}
    if (folder / CHANNELS).exists():
        tables[CHANNELS] = _table(folder, CHANNELS, found)
    ids = {row["agent_id"] for row in tables[AGENTS]}
    roster = Roster(
        agents=tuple(_agent(folder, row, found) for row in tables[AGENTS]),
        cohorts=_cohorts(tables[COHORTS], ids, found),
        channels=_channels(tables.get(CHANNELS, []), ids, found),
    )
    if tables[AGENTS]:
        _report_strays(folder, ids, found)
    elif not any(problem.file == AGENTS for problem in found.problems):
        found.add(AGENTS, 1, "It holds no agent.")
    return roster, found.problems


def _table(folder: Path, name: str, found: _Findings) -> list[Row]:
    rows, problems = read_table(folder / name, name, _COLUMNS[name])
    found.problems += problems
    return rows


def _agent(folder: Path, row: Row, found: _Findings) -> RosterAgent:
    slug, bot_name = row["agent_id"], row["bot_name"]
    status = row["status"].casefold() or "active"
    _check_agent(row, status, found)
    is_readable = is_slug(slug)
    return RosterAgent(
        line=row.line,
        slug=slug,
        bot_name=bot_name,
        represents=armed(row["represents"]),
        status=status,
        public_profile=_profile(folder, "public", slug, found) if is_readable else "",
        private_instructions=_profile(folder, "private", slug, found) if is_readable else "",
    )


def _check_agent(row: Row, status: str, found: _Findings) -> None:
    bot_name = row["bot_name"]
    _check_slug(AGENTS, row, "agent_id", found)
    if not is_bot_name(bot_name):
        found.add(AGENTS, row.line, f"The bot_name {_quoted(bot_name)} must be {BOT_NAME_LIKE}.")
    elif bot_name.casefold() in RESERVED_BOT_NAMES:
        found.add(AGENTS, row.line, f"The bot_name {_quoted(bot_name)} is reserved.")
    found.is_first(AGENTS, row, "agent_id")
    found.is_first(AGENTS, row, "bot_name")
    if status not in STATUSES:
        allowed = ", ".join(STATUSES)
        found.add(AGENTS, row.line, f"The status {_quoted(status)} is none of {allowed}.")
    _check_length(AGENTS, row, "represents", _REPRESENTS_LIMIT, found)


def _profile(folder: Path, kind: str, slug: str, found: _Findings) -> str:
    """Return a profile's text; a public one must say something."""
    name = f"{kind}/{slug}.md"
    try:
        text = read_text(folder / kind / f"{slug}.md", name).strip()
    except UnreadableError as exc:
        found.problems.append(exc.problem)
        return ""
    if kind == "public" and not text:
        found.add(name, None, "It is empty: other agents know this one by its public profile.")
    return text


def _report_strays(folder: Path, ids: Iterable[str], found: _Findings) -> None:
    """Report profiles that belong to no agent: mostly a misspelt file name."""
    expected = {f"{agent_id}.md" for agent_id in ids}
    for kind in ("public", "private"):
        for path in sorted((folder / kind).glob("*.md")):
            if path.name not in expected and not path.name.startswith("."):
                found.add(f"{kind}/{path.name}", None, f"No agent of {AGENTS} has this id.")


def _cohorts(rows: Iterable[Row], ids: Iterable[str], found: _Findings) -> tuple[RosterCohort, ...]:
    known = set(ids)
    descriptions: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for row in rows:
        name = row["cohort"]
        _check_slug(COHORTS, row, "cohort", found)
        _check_same(COHORTS, row, descriptions, name, "description", found)
        members.setdefault(name, [])
        if found.is_first(COHORTS, row, "cohort", "agent_id") and row["agent_id"]:
            _check_known(COHORTS, row, known, found)
            members[name].append(row["agent_id"])
    return tuple(
        RosterCohort(name=name, description=armed(descriptions[name]), members=tuple(members[name]))
        for name in members
    )


def _channels(
    rows: Iterable[Row], ids: Iterable[str], found: _Findings
) -> tuple[RosterChannel, ...]:
    known = set(ids)
    topics: dict[str, str] = {}
    visibilities: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    for row in rows:
        name = row["channel"]
        lines.setdefault(name, row.line)
        members.setdefault(name, [])
        _check_channel(row, found)
        _check_same(CHANNELS, row, topics, name, "topic", found)
        _check_same(CHANNELS, row, visibilities, name, "visibility", found)
        if found.is_first(CHANNELS, row, "channel", "agent_id") and row["agent_id"]:
            _check_known(CHANNELS, row, known, found)
            members[name].append(row["agent_id"])
    return tuple(
        RosterChannel(
            line=lines[name],
            name=name,
            topic=topics[name],
            is_private=visibilities[name].casefold() == "private",
            members=tuple(members[name]),
        )
        for name in members
    )


def _check_channel(row: Row, found: _Findings) -> None:
    name, visibility = row["channel"], row["visibility"]
    if not is_channel_name(name):
        found.add(CHANNELS, row.line, f"The channel {_quoted(name)} must be {CHANNEL_LIKE}.")
    if visibility.casefold() not in {"public", "private", ""}:
        text = f"The visibility {_quoted(visibility)} is neither public nor private."
        found.add(CHANNELS, row.line, text)
    if visibility.casefold() in {"public", ""} and row["agent_id"]:
        text = f"The channel {name} is public, and only a private one has members."
        found.add(CHANNELS, row.line, text)
    _check_length(CHANNELS, row, "topic", _TOPIC_LIMIT, found)


def _check_slug(file: str, row: Row, column: str, found: _Findings) -> None:
    text = row[column]
    if not is_slug(text):
        found.add(file, row.line, f"The {column} {_quoted(text)} must be {SLUG_LIKE}.")
    elif text in RESERVED_SLUGS:
        found.add(file, row.line, f"The {column} {_quoted(text)} is reserved.")


def _check_known(file: str, row: Row, known: Collection[str], found: _Findings) -> None:
    """Report an unknown agent, unless the table of agents itself could not be read."""
    agent_id = row["agent_id"]
    if known and agent_id not in known:
        near = [one for one in sorted(known) if one.casefold() == agent_id.casefold()]
        hint = f" (did you mean {near[0]}?)" if near else ""
        found.add(file, row.line, f"The agent_id {_quoted(agent_id)} is not in {AGENTS}{hint}.")


def _check_same(
    file: str, row: Row, values: dict[str, str], name: str, column: str, found: _Findings
) -> None:
    """Keep the first value of a name that is not blank, and report a row with another one."""
    kept = values.get(name) or row[column]
    values[name] = kept
    if row[column] and row[column].casefold() != kept.casefold():
        text = f"The {column} of {_quoted(name)} differs from that in an earlier line."
        found.add(file, row.line, text)


def _check_length(file: str, row: Row, column: str, limit: int, found: _Findings) -> None:
    if len(row[column]) > limit:
        found.add(file, row.line, f"The {column} is longer than {limit} characters.")


def _quoted(text: str) -> str:
    return f'"{text}"'
