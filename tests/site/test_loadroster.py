"""`loadroster`: all or nothing, twice the same, and pruned only when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from cohorts.gate import read_version
from cohorts.models import Agent, AgentVersion, Cohort, Membership, TopologyChange
from engine.models import Channel, ChannelMember, Inbox, RosterEntry, Simulation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Alder and birch in the cohort `field`, a public channel and a private one of both."""
    write_agents(tmp_path, "alder", "birch")
    (tmp_path / "cohorts.csv").write_text(
        "cohort,description,agent_id\nfield,Trees,alder\nfield,,birch\n"
    )
    (tmp_path / "channels.csv").write_text(
        "channel,topic,visibility,agent_id\ngeneral,All,public,\n"
        "den,Secrets,private,alder\nden,,private,birch\n"
    )
    return tmp_path


def write_agents(folder: Path, *slugs: str) -> None:
    rows = "".join(f"{slug},{slug.title()}Bot,{slug} lab,active\n" for slug in slugs)
    (folder / "agents.csv").write_text(f"agent_id,bot_name,represents,status\n{rows}")
    for kind in ("public", "private"):
        (folder / kind).mkdir(exist_ok=True)
        for path in (folder / kind).iterdir():
            path.unlink()
        for slug in slugs:
            (folder / kind / f"{slug}.md").write_text(f"{kind} text of {slug}")


def load(folder: Path, *flags: str) -> None:
    call_command("loadroster", str(folder), *flags)


def counts() -> list[int]:
    tables = (Agent, AgentVersion, Cohort, Membership, TopologyChange, Simulation, Channel)
    return [model.objects.count() for model in tables] + [read_version()]


def test_load_makes_agents_cohorts_and_memberships(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder)
    alder = Agent.objects.get(slug="alder")
    assert (alder.bot_name, alder.represents, alder.status) == ("AlderBot", "alder lab", "active")
    assert alder.public_profile == "public text of alder"
    assert alder.private_instructions == "private text of alder"
    assert sorted(Membership.objects.values_list("cohort__name", "agent__slug")) == [
        ("field", "alder"),
        ("field", "birch"),
    ]
    assert not Simulation.objects.exists()
    assert capsys.readouterr().out == (
        "agents: 2 created\ncohorts: 1 created\nmemberships: 2 added\n"
    )
    lines = TopologyChange.objects.filter(who="loadroster")
    assert lines.count() == 5
    assert set(lines.values_list("version", flat=True)) == {read_version()}


def test_second_load_says_so_and_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder, "--simulation", "labs", "--prune")
    before = counts()
    capsys.readouterr()
    load(folder, "--simulation", "labs", "--prune")
    assert counts() == before
    out = capsys.readouterr().out
    assert out.endswith("Everything was loaded already: nothing was changed.\n")
    assert "agents: 2 same\n" in out


def test_load_makes_a_simulation_of_this_folder(folder: Path) -> None:
    Agent.objects.create(slug="elm", bot_name="Elm")
    load(folder, "--simulation", "labs")
    simulation = Simulation.objects.get(name="labs")
    assert simulation.roster_chosen
    assert sorted(simulation.roster.values_list("slug", flat=True)) == ["alder", "birch"]
    assert list(simulation.channels.values_list("name", "topic", "visibility")) == [
        ("den", "Secrets", "private"),
        ("general", "All", "public"),
    ]
    members = ChannelMember.objects.values_list("channel__name", "agent__slug")
    assert sorted(members) == [("den", "alder"), ("den", "birch")]
    noted = TopologyChange.objects.filter(action="channel_member_added")
    assert sorted(noted.values_list("agent", "detail")) == [
        ("alder", "#den in labs"),
        ("birch", "#den in labs"),
    ]
    assert set(noted.values_list("version", flat=True)) == {read_version()}


def test_simulation_without_channels_gets_general(folder: Path) -> None:
    (folder / "channels.csv").unlink()
    load(folder, "--simulation", "labs")
    load(folder, "--simulation", "labs")
    assert list(Channel.objects.values_list("name", "visibility")) == [("general", "public")]


def test_changed_folder_changes_what_differs(folder: Path) -> None:
    load(folder, "--simulation", "labs")
    Simulation.objects.update(roster_chosen=False)
    (folder / "public" / "alder.md").write_text("Another text")
    table = (folder / "cohorts.csv").read_text()
    (folder / "cohorts.csv").write_text(table.replace("Trees", "Woods"))
    table = (folder / "channels.csv").read_text()
    (folder / "channels.csv").write_text(table.replace("Secrets", "Whispers"))
    version = read_version()
    load(folder, "--simulation", "labs")
    assert read_version() == version
    assert AgentVersion.objects.filter(agent__slug="alder").count() == 2
    assert AgentVersion.objects.filter(agent__slug="birch").count() == 1
    assert Cohort.objects.get().description == "Woods"
    assert Channel.objects.get(name="den").topic == "Whispers"
    assert Simulation.objects.get().roster_chosen


def test_bad_folder_is_refused_whole_with_every_error(folder: Path) -> None:
    with (folder / "cohorts.csv").open("a") as table:
        table.write("field,,nobody\nFIELD,,alder\n")
    (folder / "private" / "birch.md").unlink()
    with pytest.raises(CommandError) as refused:
        load(folder, "--simulation", "labs")
    assert refused.value.returncode == 2
    text = str(refused.value)
    assert text.count("\n") >= 3
    for place in ("private/birch.md", "cohorts.csv, line 4", "cohorts.csv, line 5"):
        assert place in text
    assert not Agent.objects.exists()
    assert not Simulation.objects.exists()


def test_bot_name_of_an_agent_outside_the_folder_is_refused(folder: Path) -> None:
    Agent.objects.create(slug="elm", bot_name="alderBOT")
    with pytest.raises(CommandError, match=r"agents\.csv, line 2: .* that of the agent elm"):
        load(folder)
    assert Agent.objects.count() == 1


def test_visibility_of_a_stored_channel_is_not_changed(folder: Path) -> None:
    load(folder, "--simulation", "labs")
    table = (folder / "channels.csv").read_text()
    (folder / "channels.csv").write_text(table.replace("general,All,public", "general,,private"))
    with pytest.raises(CommandError, match=r"channels\.csv, line 2: .* is public"):
        load(folder, "--simulation", "labs")
    load(folder, "--simulation", "other")
    assert Channel.objects.get(name="general", simulation__name="labs").visibility == "public"


def test_simulation_with_a_bad_name_is_refused(folder: Path) -> None:
    with pytest.raises(CommandError, match='The simulation "My Labs" must be') as refused:
        load(folder, "--simulation", "My Labs")
    assert refused.value.returncode == 2
    assert not Agent.objects.exists()


def shrink(folder: Path) -> None:
    write_agents(folder, "alder")
    (folder / "cohorts.csv").write_text("cohort,description,agent_id\nfield,Trees,\n")
    (folder / "channels.csv").write_text(
        "channel,topic,visibility,agent_id\nden,Secrets,private,alder\n"
    )


def test_what_the_folder_lacks_stays_without_prune(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder, "--simulation", "labs")
    shrink(folder)
    load(folder, "--simulation", "labs")
    assert Membership.objects.count() == 2
    assert Agent.objects.get(slug="birch").status == "active"
    assert RosterEntry.objects.count() == 2
    assert ChannelMember.objects.count() == 2
    assert capsys.readouterr().err == ""


def test_prune_takes_away_and_says_whom_it_frees(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder, "--simulation", "labs")
    shrink(folder)
    capsys.readouterr()
    load(folder, "--simulation", "labs", "--prune")
    assert not Membership.objects.exists()
    assert Agent.objects.get(slug="birch").status == "retired"
    assert list(RosterEntry.objects.values_list("agent__slug", flat=True)) == ["alder"]
    assert list(ChannelMember.objects.values_list("agent__slug", flat=True)) == ["alder"]
    assert sorted(Channel.objects.values_list("name", flat=True)) == ["den", "general"]
    said = capsys.readouterr()
    assert said.err == (
        "alder is now in no cohort: under the policy open it may deal with everyone.\n"
    )
    assert "agents: 1 same, 1 retired\n" in said.out
    assert "memberships: 2 removed\n" in said.out


def test_prune_of_an_isolated_simulation_frees_nobody(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder, "--simulation", "labs")
    Simulation.objects.update(policy="isolated")
    shrink(folder)
    load(folder, "--simulation", "labs", "--prune")
    assert not Membership.objects.exists()
    assert capsys.readouterr().err == ""


def test_dry_run_says_what_would_change_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(folder, "--simulation", "labs")
    before = counts()
    shrink(folder)
    capsys.readouterr()
    load(folder, "--simulation", "labs", "--prune", "--dry-run")
    said = capsys.readouterr()
    assert counts() == before
    assert Membership.objects.count() == 2
    assert said.out.endswith("This was a dry run: nothing was written.\n")
    assert said.err.startswith("alder would be in no cohort")


def test_load_tells_a_live_driver_who_came_to_the_roster_and_who_left(folder: Path) -> None:
    load(folder, "--simulation", "trees")
    Inbox.objects.all().delete()
    write_agents(folder, "alder", "cedar")
    (folder / "cohorts.csv").write_text("cohort,description,agent_id\nfield,Trees,alder\n")
    (folder / "channels.csv").write_text("channel,topic,visibility,agent_id\ngeneral,All,public,\n")
    load(folder, "--simulation", "trees", "--prune")
    told = set(Inbox.objects.filter(kind="agent").values_list("key", flat=True))
    ids = dict(Agent.objects.values_list("slug", "pk"))
    assert {ids["cedar"], ids["birch"]} <= told
    Inbox.objects.all().delete()
    load(folder, "--simulation", "trees", "--prune")
    assert not Inbox.objects.exists()
