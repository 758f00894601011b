"""The phases of a turn, seen from outside: what a model is asked, and what becomes of its answer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.effects import TurnOutcome
from engine.core.errors import TransientLlmError, UnusableAnswer
from engine.core.records import Channel, InvitationState, Visibility
from engine.phases import scan as scanning
from engine.phases.repeats import repeats
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Decision,
    LlmRequest,
    Move,
    NewRoot,
    PostContext,
    PruneContext,
    RememberContext,
    ReplyContext,
    ScanContext,
    SkipPost,
    Stage,
    Written,
)
from tests.runtime.parts import (
    at_home,
    contexts,
    people_write,
    raising,
    rejected,
    skip,
)
from tests.runtime.scripted_llm import Script, by_phase, eager, silent, unlike_any_other
from tests.runtime.society import Live, Played, Society, make_society, play

# --- scan ------------------------------------------------------------------------------------------


def scan_of(texts: tuple[str, ...], script: Script) -> Played:
    """Let one agent scan what people wrote, without a chance to post."""
    script = by_phase(script, post=skip)
    return play(at_home(1), people_write(*texts), script=script, latency=1.0, max_minutes=3)


def test_scan_that_cannot_be_read_counts_the_posts_as_seen() -> None:
    played = scan_of(("hello",), by_phase(silent, scan=raising(UnusableAnswer("unparsable"))))
    assert rejected(played) == {"unusable_unparsable": 1}
    assert played.tables.states[1].cursor == 1
    assert played.llm.n_calls("scan") == 1


def test_scan_keeps_only_posts_that_were_offered_and_each_once() -> None:
    played = scan_of(("one", "two"), by_phase(eager, scan=lambda _: Chosen(seqs=(2, 99, 2))))
    assert played.tables.states[1].bank == (2,)


def test_scan_shows_no_more_text_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "SCAN_CHARACTERS", 10)
    played = scan_of(("seven..", "eight...", "more than ten of them"), eager)
    shown = [
        [post.text for post in context.posts]
        for context in contexts(played, ScanContext)
        if isinstance(context, ScanContext)
    ]
    assert shown == [["seven.."], ["eight..."], ["more than ten of them"]]
    assert played.tables.states[1].bank == (1, 2, 3)


FIRST_TWENTY = tuple(range(1, 21))


@pytest.mark.parametrize(
    ("prune", "bank"),
    [
        (eager, FIRST_TWENTY),
        (raising(UnusableAnswer("empty")), tuple(range(5, 25))),
        (lambda _: Chosen(seqs=(99,)), tuple(range(5, 25))),
        (lambda _: Chosen(seqs=(24, 3)), (3, 24)),
    ],
    ids=["as-chosen", "unusable", "unknown", "few"],
)
def test_bank_over_its_size_is_pruned_by_one_call(prune: Script, bank: tuple[int, ...]) -> None:
    texts = tuple(f"number {number}" for number in range(24))
    played = scan_of(texts, by_phase(eager, prune=prune))
    assert sorted(played.tables.states[1].bank) == list(bank)
    assert played.llm.n_calls("prune") == 1


def test_prune_chooses_among_what_was_kept_before_and_now() -> None:
    async def write(live: Live) -> None:
        for start in (0, 15):
            await people_write(*(f"number {n}" for n in range(start, start + 15)))(live)
            await live.sleep(30)

    script = by_phase(eager, post=skip)
    played = play(at_home(1), write, script=script, latency=1.0, until_idle=False, max_minutes=3)
    (context,) = contexts(played, PruneContext)
    assert isinstance(context, PruneContext)
    assert [post.seq for post in context.posts] == list(range(1, 31))
    assert played.tables.states[1].bank == FIRST_TWENTY


# --- post ------------------------------------------------------------------------------------------


def test_chance_may_pass_unasked() -> None:
    played = play(at_home(1), script=eager, post_skip_probability=1.0, max_minutes=4)
    assert played.llm.n_calls() == 0
    assert [turn.outcome for turn in played.tables.turns.values()] == [TurnOutcome.SKIPPED]
    assert played.tables.states[1].skip_streak == 1


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (NewRoot(channel="nowhere", text="hello there", tag=None), "unusable_unknown_id"),
        (NewRoot(channel="general", text="hello there", tag="nobody"), "unusable_unknown_id"),
        (NewRoot(channel="general", text="  ", tag=None), "unusable_unknown_id"),
        (AnswerPost(seq=99, text="hello there"), "unusable_unknown_id"),
    ],
    ids=["channel", "tag", "text", "post"],
)
def test_draft_that_names_nothing_on_offer_uses_the_chance_up(
    decision: Decision, reason: str
) -> None:
    played = play(at_home(1), script=by_phase(silent, post=lambda _: decision), max_minutes=4)
    assert (played.tables.messages, played.llm.n_calls("post")) == ({}, 1)
    assert rejected(played) == {reason: 1}
    assert played.tables.states[1].skip_streak == 1


def test_unusable_draft_uses_the_chance_up() -> None:
    script = by_phase(silent, post=raising(UnusableAnswer("refused")))
    played = play(at_home(1), script=script, until_idle=False, max_minutes=16)
    # The next chances come after 5 and then 10 minutes more.
    assert rejected(played) == {"unusable_refused": 3}
    starts = [turn.selected_at for turn in played.tables.turns.values()]
    assert [(at - starts[0]).total_seconds() for at in starts] == [0, 300, 900]


def test_draft_that_repeats_the_authors_last_words_is_given_up() -> None:
    def same(_request: LlmRequest) -> Decision:
        return NewRoot(channel="#general", text="The very same words, once more.", tag=None)

    played = play(
        at_home(1),
        script=by_phase(silent, post=same),
        max_minutes=6,
        daily_posts=9,
        until_idle=False,
    )
    assert len(played.tables.messages) == 1
    assert rejected(played)["repeats"] == 2


def test_tag_is_put_first_when_the_text_names_another_first() -> None:
    texts = {"a1": "ask @Bot3 or @Bot2", "a2": "hello", "a3": "@Bot2x is not @Bot2, mind"}
    tags = {"a1": "a2", "a2": "a3", "a3": "a2"}

    def tagged(request: LlmRequest) -> Decision:
        return NewRoot(channel="general", text=texts[request.agent], tag=tags[request.agent])

    played = play(at_home(3), script=by_phase(silent, post=tagged), daily_posts=1, max_turns=3)
    said = {row.message.author: row for row in played.tables.messages.values() if row.turn}
    roots = {author: row for author, row in said.items() if row.message.root is None}
    assert roots[1].message.text == "@Bot2 ask @Bot3 or @Bot2"
    assert roots[2].message.text == "@Bot3 hello"
    assert roots[3].message.text == "@Bot2x is not @Bot2, mind"
    assert {author: row.addressed for author, row in roots.items()} == {1: 2, 2: 3, 3: 2}


def test_post_shows_a_private_memory_only_where_nothing_public_is_on_offer() -> None:
    """An agent whose one channel is private may be reminded of it; else not."""

    def remembered(society: Society) -> list[str]:
        for channel, text in ((None, "in public"), (2, "in private")):
            society.people.edit_memory(agent=1, channel=channel, text=text)
        played = play(society, script=silent, max_turns=1)
        return [c.memory for c in contexts(played, PostContext) if isinstance(c, PostContext)]

    both = at_home(1, private={"parlour": (1,)})
    both.tables.subscriptions[1, 2] = None
    assert remembered(both) == ["in public"]
    alone = make_society(1, private={"parlour": (1,)})
    alone.tables.subscriptions = {(1, 2): None}
    alone.tables.channels[1] = Channel(
        id=1, name="general", topic="", visibility=Visibility.PRIVATE
    )
    alone.change_topology(members={2: (1,)})
    assert remembered(alone) == ["in public\n\nin private"]


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ("We keep bees on the north hill", True),
        ("we keep bees, on the North hill!", True),
        ("We keep goats in the valley", False),
        ("bees", False),
    ],
)
def test_repeats_compares_runs_of_three_words(text: str, *, is_repeated: bool) -> None:
    assert repeats(text, ["hello", "We keep bees on the north hill"]) is is_repeated


def test_repeats_counts_the_very_share_as_nearly_equal() -> None:
    assert repeats("a a a b b a a", ["a a a b b a"])  # four runs of five
    assert not repeats("a a a b b a c", ["a a a b b c"])


def test_repeats_compares_texts_of_a_word_or_two_whole() -> None:
    assert repeats("Yes please", ["yes, please"])
    assert not repeats("Yes please", ["no thanks"])
    assert not repeats("Yes please", ["Oh yes please"])


WORDS = st.lists(st.sampled_from(["a", "b", "Ç", "d_1", "一"]), max_size=9)
TEXTS = st.builds(lambda words, gap: gap.join(words), WORDS, st.sampled_from([" ", ", ", "–\n"]))


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_repeats_finds_what_comparing_all_runs_of_all_texts_finds(
    draft: str, earlier: list[str]
) -> None:
    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return set(zip(words, words[1:], words[2:], strict=False)) or {tuple(words)}

    def share(text: str) -> float:
        return len(runs(draft) & runs(text)) / len(runs(draft) | runs(text))

    assert repeats(draft, earlier) == any(share(text) >= 0.8 for text in earlier)


# --- reply -----------------------------------------------------------------------------------------


def reply_contexts(played: Played, root: int) -> list[ReplyContext]:
    return [
        r.context
        for r in played.llm.requests
        if r.thread == root and isinstance(r.context, ReplyContext)
    ]


def one_talk(reply: Script, **settings: Any) -> Played:
    """Let two agents talk under the first root of the first one."""

    def first_posts(request: LlmRequest) -> Decision:
        assert isinstance(request.context, PostContext)
        if request.agent == "a1":
            return NewRoot(channel="general", text=f"@Bot2 {unlike_any_other(request)}", tag="a2")
        return SkipPost(reason="listening")

    script = by_phase(silent, post=first_posts, reply=reply)
    return play(at_home(2), script=script, daily_posts=1, concurrent_turns=1, **settings)


def test_talk_goes_through_its_stages_to_the_cap() -> None:
    def go_on(request: LlmRequest) -> Decision:
        assert isinstance(request.context, ReplyContext)
        moves = request.context.moves
        move = Move.CONTINUE if Move.CONTINUE in moves else Move.PROPOSE
        return Written(move=move, text=unlike_any_other(request))

    played = one_talk(go_on, thread_messages=7)
    asked = reply_contexts(played, 1)
    assert [context.message_number for context in asked] == [2, 3, 4, 5, 6, 7]
    assert [context.stage for context in asked] == [
        *[Stage.EXPLORE] * 3,
        *[Stage.DECIDE] * 2,
        Stage.CONCLUDE,
    ]
    assert asked[0].moves == (Move.CONTINUE, Move.DECLINE)
    assert asked[3].moves == (Move.CONTINUE, Move.PROPOSE, Move.DECLINE)
    assert asked[5].moves == (Move.PROPOSE, Move.DECLINE)
    assert [row.outcome for row in played.tables.decisions.values()] == ["timeout"]


def test_summary_of_the_other_side_may_be_accepted() -> None:
    played = one_talk(eager)
    last = reply_contexts(played, 1)[-1]
    assert last.summary is not None
    assert last.summary == last.history[-1]
    assert Move.ACCEPT in last.moves
    assert [row.outcome for row in played.tables.decisions.values()] == ["proposal"]


@pytest.mark.parametrize("move", [Move.PROPOSE, Move.ACCEPT])
def test_move_that_is_not_allowed_counts_as_unusable(move: Move) -> None:
    def not_allowed(request: LlmRequest) -> Decision:
        return Written(move=move, text=unlike_any_other(request))

    played = one_talk(not_allowed)
    assert rejected(played) == {"unusable_move": 1}
    (invitation,) = played.tables.invitations.values()
    assert (invitation.state, invitation.reason) == (InvitationState.REFUSED, "unusable")


def test_person_alone_is_only_answered_on() -> None:
    script = by_phase(silent, reply=eager)
    played = play(at_home(1), people_write("@Bot1 hello"), script=script, latency=1.0)
    (context,) = reply_contexts(played, 1)
    assert (context.moves, context.partner, context.history[0].author) == (
        (Move.CONTINUE,),
        None,
        "Ada",
    )


def test_answer_that_failed_leaves_the_others_of_its_turn() -> None:
    """Two debts, one call that dies: what the other wrote is handed in before the turn ends."""

    def dies_on_one(request: LlmRequest) -> Decision:
        if request.agent == "a1" and request.thread == 1:
            raise TransientLlmError("busy", retry_after_seconds=600)
        return Written(move=Move.CONTINUE, text=unlike_any_other(request))

    script = by_phase(silent, reply=dies_on_one)
    played = play(
        at_home(1),
        people_write("@Bot1 hello", "@Bot1 good day"),
        script=script,
        latency=1.0,
        max_minutes=5,
    )
    turn = played.tables.turns[1]
    assert (turn.outcome, turn.n_committed) == (TurnOutcome.BACKOFF, 2)
    assert turn.detail == "busy Waiting until 08:10:01 UTC."
    assert [row.message.root for row in played.tables.messages.values()] == [None, None, 2]
    assert [one.message for one in played.engine.world.desk(1).invitations] == [1]


# --- remember --------------------------------------------------------------------------------------


def test_unusable_memory_keeps_the_old_text_and_is_not_asked_again() -> None:
    def forgets(request: LlmRequest) -> Decision:
        raise UnusableAnswer("truncated")

    script = by_phase(eager, remember=forgets)
    society = at_home(2)
    society.people.edit_memory(agent=1, channel=None, text="by hand")
    played = play(society, script=script, daily_posts=1, max_turns=40)
    assert rejected(played)["unusable_truncated"] == played.llm.n_calls("remember") > 0
    memory = played.tables.memories[1, None]
    assert memory.version > 1
    assert society.tables.memory_texts[1, None, memory.version] == "by hand"
    assert played.engine.world.desk(1).untold == ()


def test_memory_is_told_of_the_partner_and_the_outcome() -> None:
    played = one_talk(eager)
    told = [c.talks for c in contexts(played, RememberContext) if isinstance(c, RememberContext)]
    assert [(talk.partner, talk.outcome) for talks in told for talk in talks] == [
        ("Bot2", "proposal"),
        ("Bot1", "proposal"),
    ]
