"""What every store reads back: mail, texts, memories, the beat, and what a world is built from."""

from __future__ import annotations

import asyncio
from datetime import date

from engine.core.effects import (
    AgentChanged,
    ChannelChanged,
    MemoryChanged,
    Reviewed,
    TakeIn,
    Verdict,
)
from engine.core.group import NewMemory, NewProposal
from engine.core.records import (
    AgentState,
    Invitation,
    InvitationKind,
    Memory,
    Status,
    Talk,
)
from engine.ports.store import Texts, Wanted, Wish
from tests.contract.groups import (
    START,
    at,
    call,
    closed,
    decision,
    group,
    message,
    post,
    taken_in,
    thread,
    turn,
)
from tests.contract.site import Site, commit, memory_text, run


def test_mail_brings_a_persons_message_until_it_is_taken_in(site: Site) -> None:
    store = site.open_store()
    first = site.write_message(channel=1, text="Hello")
    second = site.write_message(channel=1, text="Again")
    mail = run(store.read_mail())
    assert mail == (
        TakeIn(message_id=first, channel=1, root=None, text="Hello", written_at=START),
        TakeIn(message_id=second, channel=1, root=None, text="Again", written_at=START),
    )
    commit(store, group(1, taken_in=[taken_in(first, 1), taken_in(second, 2)]))
    assert run(store.read_mail()) == ()
    stored = run(store.read(Wanted(agent=1, messages=(2, 1)))).messages
    assert [(one.seq, one.person, one.is_bot, one.text) for one in stored] == [
        (1, "Ada", False, "Hello"),
        (2, "Ada", False, "Again"),
    ]


def test_mail_brings_the_root_and_thread_of_an_answer(site: Site) -> None:
    store = site.open_store()
    ends = closed(thread(1, 2, 1), 2)
    commit(
        store,
        group(
            1,
            messages=[post(1), message(2, author=2, root=1, ordinal=2)],
            threads=[ends],
            decisions=[decision(ends)],
        ),
    )
    answer = site.write_message(channel=1, text="One more thing", root=1)
    (effect,) = run(store.read_mail())
    assert isinstance(effect, TakeIn)
    assert (effect.root, effect.known_thread) == (1, ends)
    assert effect.known_root is not None
    assert (effect.known_root.n_messages, effect.known_root.answered_by) == (2, (2,))
    commit(store, group(2, taken_in=[taken_in(answer, 3, root=1, ordinal=3)]))
    texts = run(store.read(Wanted(agent=1, histories=((1, 3),), newest=1)))
    assert [one.text for one in texts.histories[1]] == ["text 1", "One more thing"]


def test_mail_brings_changes_until_their_notes_are_deleted(site: Site) -> None:
    store = site.open_store()
    site.pause_agent(3)
    site.rename_topic(2, "Alloys")
    site.edit_memory(agent=1, channel=None, text="By hand.")
    mail = run(store.read_mail())
    agent, channel, memory = mail
    assert isinstance(agent, AgentChanged)
    assert agent.spec is not None
    assert (agent.agent, agent.spec.status, agent.spec.version) == (3, Status.PAUSED, 1)
    assert isinstance(channel, ChannelChanged)
    assert channel.channel is not None
    assert (channel.channel.id, channel.channel.topic) == (2, "Alloys")
    assert isinstance(memory, MemoryChanged)
    assert (memory.agent, memory.channel, memory.version, memory.upto_seq) == (1, None, 1, 0)
    assert agent.note is not None
    commit(store, group(1, notes=[agent.note, memory.note]))
    assert run(store.read_mail()) == (channel,)


def test_mail_brings_a_review_with_root_and_thread(site: Site) -> None:
    store = site.open_store()
    ends = closed(thread(1, 2, 1), 2)
    proposal = NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=2, at=at(2))
    commit(
        store,
        group(
            1,
            messages=[post(1), message(2, author=2, root=1, ordinal=2)],
            threads=[ends],
            decisions=[decision(ends)],
            proposals=[proposal],
        ),
    )
    site.review(root=1, cycle=1, verdict=Verdict.REVISED, note="Name a budget.")
    (effect,) = run(store.read_mail())
    assert isinstance(effect, Reviewed)
    assert (effect.root, effect.cycle, effect.verdict) == (1, 1, Verdict.REVISED)
    assert (effect.guidance, effect.known_thread) == ("Name a budget.", ends)
    assert effect.known_root.answered_by == (2,)
    assert run(store.load()).unreviewed == ()


def test_beat_tells_what_a_driver_has_to_know(site: Site) -> None:
    store = site.open_store()
    quiet = store.beat()
    assert (quiet.ours, quiet.wish, quiet.has_mail, quiet.max_calls) == (
        True,
        Wish.RUN,
        False,
        None,
    )
    site.wish(Wish.DRAIN, max_calls=50)
    site.move_topology()
    site.write_message(channel=1, text="Hello")
    beat = store.beat()
    assert (beat.wish, beat.max_calls, beat.has_mail) == (Wish.DRAIN, 50, True)
    assert beat.topology_version > quiet.topology_version
    assert beat.topology_version == run(store.load_gate()).version


def test_beat_tells_of_a_note(site: Site) -> None:
    store = site.open_store()
    site.pause_agent(1)
    assert store.beat().has_mail


def test_beat_tells_that_another_driver_came(site: Site) -> None:
    early = site.open_store()
    site.open_store()
    assert not early.beat().ours


def test_history_is_the_root_and_the_newest_answers_up_to_an_ordinal(site: Site) -> None:
    store = site.open_store()
    answers = [message(seq, author=2 - seq % 2, root=1, ordinal=seq) for seq in range(2, 7)]
    commit(store, group(1, messages=[post(1), *answers, post(7)]))
    wanted = [((1, 6), 2), ((1, 6), 9), ((1, 4), 2), ((1, 1), 2), ((7, 1), 2)]

    async def all_at_once() -> list[Texts]:
        asked = (
            store.read(Wanted(agent=1, histories=(place,), newest=newest))
            for place, newest in wanted
        )
        return await asyncio.gather(*asked)

    shown = [
        [one.ordinal for one in texts.histories[place[0]]]
        for texts, (place, _) in zip(run(all_at_once()), wanted, strict=True)
    ]
    assert shown == [[1, 5, 6], [1, 2, 3, 4, 5, 6], [1, 3, 4], [1], [1]]


def test_messages_leaves_out_what_is_unknown(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1), post(2)]))
    texts = run(store.read(Wanted(agent=1, messages=(2, 9, 1))))
    assert [one.seq for one in texts.messages] == [1, 2]


def test_text_that_is_gone_takes_nobody_else_s_along(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1), message(2, author=2, root=1, ordinal=2)]))
    gone = Wanted(agent=1, histories=((9, 2), (1, 2)), newest=5, messages=(1, 9, 1))

    async def all_at_once() -> tuple[Texts, Texts]:
        return await asyncio.gather(store.read(gone), store.read(Wanted(agent=2, messages=(1,))))

    ours, theirs = run(all_at_once())
    assert (ours.histories[9], len(ours.histories[1])) == ((), 2)
    assert [one.seq for one in ours.messages] == [1]
    assert [one.seq for one in theirs.messages] == [1]


def test_recent_texts_are_an_agents_own_newest_last(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(seq, author=1 + seq % 2) for seq in range(1, 8)]))
    assert run(store.read(Wanted(agent=1, n_recent=2))).recent == ("text 4", "text 6")
    assert run(store.read(Wanted(agent=1, n_recent=9))).recent == ("text 2", "text 4", "text 6")
    assert run(store.read(Wanted(agent=1))).recent == ()
    assert run(store.read(Wanted(agent=4, n_recent=2))).recent == ()


def test_turns_that_ask_at_the_same_moment_get_each_their_own_texts(site: Site) -> None:
    store = site.open_store()
    commit(
        store,
        group(1, messages=[post(1), post(2, author=2), message(3, author=2, root=1, ordinal=2)]),
        group(2, memories=[NewMemory(memory=Memory(agent=2, channel=None, version=1), text="So.")]),
    )
    first = Wanted(agent=1, histories=((1, 2),), newest=5, memories=(None,), n_recent=1)
    second = Wanted(agent=2, messages=(2,), memories=(None, 2), n_recent=2)

    async def all_at_once() -> list[Texts]:
        return await asyncio.gather(*(store.read(one) for one in (first, second, first)))

    ours, theirs, again = run(all_at_once())
    assert ours == again
    assert [one.text for one in ours.histories[1]] == ["text 1", "text 3"]
    assert (ours.messages, ours.memories, ours.recent) == ((), {None: ""}, ("text 1",))
    assert [one.text for one in theirs.messages] == ["text 2"]
    assert (theirs.histories, theirs.memories) == ({}, {None: "So.", 2: ""})
    assert theirs.recent == ("text 2", "text 3")


def test_memory_text_is_the_newest_of_its_segment(site: Site) -> None:
    store = site.open_store()
    public = NewMemory(memory=Memory(agent=1, channel=None, version=1, upto_seq=0), text="One.")
    secret = NewMemory(memory=Memory(agent=1, channel=2, version=1, upto_seq=3), text="Secret.")
    commit(store, group(1, memories=[public, secret]))
    site.edit_memory(agent=1, channel=None, text="By hand.")
    assert memory_text(store, 1, None) == "By hand."
    assert memory_text(store, 1, 2) == "Secret."
    assert memory_text(store, 2, None) == ""
    assert run(store.load()).memories == (
        Memory(agent=1, channel=None, version=2, upto_seq=0),
        Memory(agent=1, channel=2, version=1, upto_seq=3),
    )


def test_told_talks_end_where_each_cycle_closed(site: Site) -> None:
    store = site.open_store()
    first = closed(thread(1, 2, 1), 2)
    second = closed(thread(1, 2, 1, cycle=2), 3)
    commit(
        store,
        group(
            1,
            messages=[post(1), message(2, author=2, root=1, ordinal=2)],
            threads=[first],
            decisions=[decision(first)],
        ),
        group(
            2,
            messages=[message(3, author=1, root=1, ordinal=3)],
            threads=[second],
            decisions=[decision(second)],
        ),
    )
    talks = tuple(talk for agent, talk in run(store.load()).untold if agent == 1)
    told = run(store.told_talks(talks, agent=1))
    assert [(one.root, one.partner, one.outcome, len(one.history)) for one in told] == [
        (1, 2, "no_proposal", 2),
        (1, 2, "no_proposal", 3),
    ]
    assert run(store.told_talks(talks[:1], agent=2))[0].partner == 1


def test_load_names_untold_talks_by_segment(site: Site) -> None:
    store = site.open_store()
    public = closed(thread(1, 2, 1), 2)
    secret = closed(thread(3, 2, 1, channel=2), 4)
    knows = NewMemory(memory=Memory(agent=1, channel=None, version=1, upto_seq=2), text="One.")
    commit(
        store,
        group(
            1,
            messages=[
                post(1),
                message(2, author=2, root=1, ordinal=2),
                message(3, author=1, root=None, ordinal=1, channel=2),
                message(4, author=2, root=3, ordinal=2, channel=2),
            ],
            threads=[public, secret],
            decisions=[decision(public), decision(secret)],
            memories=[knows],
        ),
    )
    assert run(store.load()).untold == (
        (1, Talk(closed_seq=4, root=3, channel=2)),
        (2, Talk(closed_seq=2, root=1, channel=None)),
        (2, Talk(closed_seq=4, root=3, channel=2)),
    )


def test_load_brings_the_roots_that_somebody_may_still_use(site: Site) -> None:
    store = site.open_store()
    invitation = Invitation(
        agent=4, message=3, root=3, kind=InvitationKind.MENTION, by_person=False
    )
    commit(
        store,
        group(
            1,
            messages=[*(post(seq) for seq in range(1, 8))],
            states=[
                (1, AgentState(cursor=5, bank=(1,))),
                *((agent, AgentState(cursor=6)) for agent in (2, 3)),
                (4, AgentState(cursor=5)),
            ],
            invitations=[invitation],
        ),
    )
    site.pause_agent(1)
    assert [root.seq for root in run(store.load()).roots] == [1, 3, 6, 7]


def test_load_brings_states_turns_calls_and_subscriptions(site: Site) -> None:
    store = site.open_store()
    state = AgentState(
        last_selected=9,
        ended_at=at(4),
        cursor=3,
        bank=(3, 1),
        posts_on=date(2026, 3, 2),
        posts_made=2,
        private_posts_made=1,
        next_post_at=at(60),
        skip_streak=4,
    )
    calls = [call(1, 1, seconds=0), call(1, 2, seconds=100), call(1, 3, agent=2, seconds=100)]
    commit(
        store,
        group(
            1,
            seconds=700,
            messages=[post(1), post(2), post(3)],
            states=[(1, state)],
            turns=[turn(1), turn(7)],
            calls=calls,
            subscriptions=[(2, 1), (1, 2), (1, 1)],
        ),
        group(2, seconds=700, subscriptions=[(1, 1)]),
    )
    loaded = run(store.load())
    assert loaded.states == ((1, state),)
    assert loaded.last_turn == 9
    assert loaded.calls == ((1, at(100)), (2, at(100)))
    assert loaded.subscriptions == ((1, 1), (1, 2), (2, 1))


def test_load_of_a_simulation_without_history_is_empty(site: Site) -> None:
    loaded = run(site.open_store().load())
    assert (loaded.commit_no, loaded.last_seq, loaded.last_turn) == (0, 0, 0)
    assert (loaded.wrote_at, loaded.roots, loaded.threads, loaded.calls) == (None, (), (), ())
    assert [spec.bot_name for spec in loaded.agents] == ["Bot1", "Bot2", "Bot3", "Bot4"]
    assert loaded.gate.members_of[2] == frozenset({1, 2})


def test_search_returns_the_newest_messages_with_all_the_words(site: Site) -> None:
    store = site.open_store()
    said = ("Salt of the sea", "sea salt, 100%", "salt_of_the_hills", "pepper")
    commit(
        store,
        group(
            1,
            messages=[
                message(seq, author=1, root=None, ordinal=1, text=text)
                for seq, text in enumerate(said, 1)
            ]
            + [message(5, author=1, root=None, ordinal=1, channel=2, text="salt elsewhere")],
        ),
    )
    site.write_message(channel=1, text="salt that has no seq yet")

    def found(*words: str, channels: tuple[int, ...] = (1,), most: int = 9) -> list[int]:
        hits = run(store.search(words, channels=channels, most=most))
        return [one.seq for one in hits]

    assert found("SALT") == [3, 2, 1]
    assert found("salt", "sea") == [2, 1]
    assert found("salt", channels=(1, 2)) == [5, 3, 2, 1]
    assert found("salt", most=2) == [3, 2]
    assert (found("100%"), found("t_o"), found("%"), found("'; --")) == ([2], [3], [2], [])
    assert found("salt", channels=()) == []


def test_search_of_an_empty_simulation_finds_nothing(site: Site) -> None:
    assert run(site.open_store().search(("salt",), channels=(1,), most=5)) == ()
