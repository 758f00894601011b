"""A roster folder is read right, or refused with every error by file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cohorts.roster import RosterAgent, RosterChannel, RosterCohort, read_roster
from cohorts.tables import Problem

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = "agent_id,bot_name,represents,status\nalder,AlderBot,Alder lab,active\nbirch,BirchBot,,\n"
COHORTS = "cohort,description,agent_id\nfield,Trees,alder\nfield,,birch\n"
CHANNELS = (
    "channel,topic,visibility,agent_id\n"
    "general,Everything,public,\n"
    "den,Secrets,private,alder\n"
    "den,,private,birch\n"
)


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Write a sound folder of alder and birch, with some of its files replaced."""
    sound: dict[str, str | bytes] = {
        "agents.csv": AGENTS,
        "cohorts.csv": COHORTS,
        "public/alder.md": "Alder.\n",
        "public/birch.md": "Birch.\r\nTwo lines.\r\n",
        "private/alder.md": "",
        "private/birch.md": "Hush.",
    }
    for name, content in {**sound, **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def problems_of(folder: Path, files: dict[str, str | bytes]) -> list[str]:
    return [str(problem) for problem in read_roster(write(folder, files))[1]]


def test_sound_folder_is_read_whole(tmp_path: Path) -> None:
    roster, problems = read_roster(write(tmp_path, {"channels.csv": CHANNELS}))
    assert problems == []
    assert roster.agents == (
        RosterAgent(
            line=2,
            slug="alder",
            bot_name="AlderBot",
            represents="Alder lab",
            status="active",
            public_profile="Alder.",
            private_instructions="",
        ),
        RosterAgent(
            line=3,
            slug="birch",
            bot_name="BirchBot",
            represents="",
            status="active",
            public_profile="Birch.\nTwo lines.",
            private_instructions="Hush.",
        ),
    )
    assert roster.cohorts == (
        RosterCohort(name="field", description="Trees", members=("alder", "birch")),
    )
    assert roster.channels == (
        RosterChannel(line=2, name="general", topic="Everything", is_private=False, members=()),
        RosterChannel(
            line=3, name="den", topic="Secrets", is_private=True, members=("alder", "birch")
        ),
    )


@pytest.mark.parametrize(
    "content",
    [
        AGENTS.encode("utf-8-sig"),
        AGENTS.encode("utf-16"),
        b"\xfe\xff" + AGENTS.encode("utf-16-be"),
        AGENTS.replace(",", ";").encode(),
        AGENTS.replace(",", "\t").encode("utf-16"),
        AGENTS.replace("\n", "\r\n").encode(),
        AGENTS.replace("\n", "\r").encode(),
        AGENTS.replace("agent_id,bot_name", " Agent_ID , BOT_NAME ").encode(),
        AGENTS.replace("alder,AlderBot", "  alder , AlderBot\u00a0").encode(),
        AGENTS.replace("birch,BirchBot,,", "birch,BirchBot").encode(),
        AGENTS.replace("\nbirch", "\n\n , ,,\nbirch").encode(),
        AGENTS.replace("\nbirch,BirchBot,,", '\n"birch","BirchBot","",ACTIVE,,').encode(),
        b"\n" + AGENTS.encode(),
    ],
    ids=lambda content: repr(content[:24]),
)
def test_table_is_read_in_every_usual_form(tmp_path: Path, content: bytes) -> None:
    roster, problems = read_roster(write(tmp_path, {"agents.csv": content}))
    assert problems == []
    assert [(one.slug, one.bot_name, one.status) for one in roster.agents] == [
        ("alder", "AlderBot", "active"),
        ("birch", "BirchBot", "active"),
    ]


def test_quoted_line_break_is_kept_and_later_lines_are_counted_right(tmp_path: Path) -> None:
    table = 'cohort,description,agent_id\nfield,"Trees,\nand more",alder\nfield,,nobody\n'
    roster, problems = read_roster(write(tmp_path, {"cohorts.csv": table}))
    assert roster.cohorts[0].description == "Trees,\nand more"
    assert [str(problem) for problem in problems] == [
        'cohorts.csv, line 4: The agent_id "nobody" is not in agents.csv.'
    ]


HEADER = "agent_id,bot_name,represents,status\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"agents.csv": ""}, "agents.csv, line 1: It is empty: its first row must be"),
        ({"agents.csv": HEADER}, "agents.csv, line 1: It holds no agent."),
        (
            {"agents.csv": AGENTS.replace("bot_name", "name")},
            "agents.csv, line 1: The column bot_name is missing: its columns are agent_id,",
        ),
        (
            {"agents.csv": AGENTS.replace("bot_name", "name")},
            "agents.csv, line 1: The column name is not known: its columns are",
        ),
        (
            {"agents.csv": AGENTS.replace("represents", "status")},
            "agents.csv, line 1: The column status is there twice.",
        ),
        (
            {"agents.csv": AGENTS.replace("birch,BirchBot,,", "birch,BirchBot,,,surplus")},
            "agents.csv, line 3: It has more cells than the first row has columns.",
        ),
        (
            {"agents.csv": AGENTS + '"open,x,,\n'},
            "agents.csv, line 4: The row cannot be read (unexpected end of data): look for a",
        ),
        (
            {"agents.csv": AGENTS.encode() + b"caf\xe9,C,,\n"},
            "agents.csv, line 4: It is neither UTF-8 nor UTF-16: save the file as UTF-8.",
        ),
        (
            {"public/alder.md": b"one\ntwo\x00\n"},
            "public/alder.md, line 2: It holds a NUL character: remove it,",
        ),
        (
            {"agents.csv": AGENTS + "Cedar,CedarBot,,\n"},
            'agents.csv, line 4: The agent_id "Cedar" must be 1 to 48 lower-case letters,',
        ),
        (
            {"agents.csv": AGENTS + "none,NoneBot,,\n"},
            'agents.csv, line 4: The agent_id "none" is reserved.',
        ),
        (
            {"agents.csv": AGENTS + "cedar,Cedar Bot,,\n"},
            'agents.csv, line 4: The bot_name "Cedar Bot" must be 1 to 48 letters,',
        ),
        (
            {"agents.csv": AGENTS + "cedar,HERE,,\n"},
            'agents.csv, line 4: The bot_name "HERE" is reserved.',
        ),
        (
            {"agents.csv": AGENTS + " Alder ,Other,,\n"},
            'agents.csv, line 4: The agent_id "Alder" is already in line 2: remove one',
        ),
        (
            {"agents.csv": AGENTS + "cedar,alderBOT,,\n"},
            'agents.csv, line 4: The bot_name "alderBOT" is already in line 2: remove one',
        ),
        (
            {"agents.csv": AGENTS.replace("active", "asleep")},
            'agents.csv, line 2: The status "asleep" is none of active, paused, retired.',
        ),
        (
            {"agents.csv": AGENTS.replace("Alder lab", "x" * 201)},
            "agents.csv, line 2: The represents is longer than 200 characters.",
        ),
        ({"public/alder.md": " \n"}, "public/alder.md: It is empty: other agents know this one"),
        ({"public/cedar.md": "?"}, "public/cedar.md: No agent of agents.csv has this id."),
        ({"private/Alder.md": "?"}, "private/Alder.md: No agent of agents.csv has this id."),
        (
            {"cohorts.csv": COHORTS + "field,,Alder\n"},
            'cohorts.csv, line 4: The cohort "field" and agent_id "Alder" is already in line 2',
        ),
        (
            {"cohorts.csv": "cohort,description,agent_id\nfield,,Alder\n"},
            'cohorts.csv, line 2: The agent_id "Alder" is not in agents.csv (did you mean alder?).',
        ),
        (
            {"cohorts.csv": COHORTS + "Field,,alder\n"},
            'cohorts.csv, line 4: The cohort "Field" must be 1 to 48 lower-case',
        ),
        (
            {"cohorts.csv": COHORTS + "all,,alder\n"},
            'cohorts.csv, line 4: The cohort "all" is reserved.',
        ),
        (
            {"cohorts.csv": COHORTS.replace("field,,birch", "field,Stones,birch")},
            'cohorts.csv, line 3: The description of "field" differs from that in an earlier line.',
        ),
        (
            {"channels.csv": CHANNELS + "#den,,private,\n"},
            'channels.csv, line 5: The channel "#den" must be 1 to 80 lower-case letters,',
        ),
        (
            {"channels.csv": CHANNELS + "attic,,hidden,\n"},
            'channels.csv, line 5: The visibility "hidden" is neither public nor private.',
        ),
        (
            {"channels.csv": CHANNELS + "attic,,public,alder\n"},
            "channels.csv, line 5: The channel attic is public, and only a private one has",
        ),
        (
            {"channels.csv": CHANNELS + "den,,public,\n"},
            'channels.csv, line 5: The visibility of "den" differs from that in an earlier line.',
        ),
        (
            {"channels.csv": CHANNELS + f"attic,{'x' * 251},public,\n"},
            "channels.csv, line 5: The topic is longer than 250 characters.",
        ),
        (
            {"channels.csv": CHANNELS + "den,,private,cedar\n"},
            'channels.csv, line 5: The agent_id "cedar" is not in agents.csv.',
        ),
        (
            {"channels.csv": CHANNELS + "den,,private,alder\n"},
            'channels.csv, line 5: The channel "den" and agent_id "alder" is already in line 3',
        ),
    ],
)
def test_error_is_reported_by_file_and_line(
    tmp_path: Path, files: dict[str, str | bytes], expected: str
) -> None:
    problems = problems_of(tmp_path, files)
    assert [problem for problem in problems if problem.startswith(expected)], problems


def test_missing_files_are_reported_together(tmp_path: Path) -> None:
    write(tmp_path, {})
    for name in ("cohorts.csv", "public/alder.md", "private/birch.md"):
        (tmp_path / name).unlink()
    assert [str(problem) for problem in read_roster(tmp_path)[1]] == [
        "cohorts.csv: It is missing.",
        "public/alder.md: It is missing.",
        "private/birch.md: It is missing.",
    ]


def test_file_that_is_a_folder_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {})
    (tmp_path / "cohorts.csv").unlink()
    (tmp_path / "cohorts.csv").mkdir()
    assert [str(problem) for problem in read_roster(tmp_path)[1]] == [
        "cohorts.csv: It cannot be read (Is a directory)."
    ]


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    problem = Problem(file=str(tmp_path / "gone"), line=None, text="There is no such folder.")
    assert read_roster(tmp_path / "gone")[1] == [problem]


def test_cohort_without_members_and_hidden_files_are_no_error(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "cohorts.csv": COHORTS + "empty,Nobody yet,\n",
        "public/.draft.md": "?",
        "public/notes.txt": "?",
    }
    roster, problems = read_roster(write(tmp_path, files))
    assert problems == []
    assert roster.cohorts[1] == RosterCohort(name="empty", description="Nobody yet", members=())
