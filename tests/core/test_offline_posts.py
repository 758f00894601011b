"""What the offline LLM picks from a channel, keeps in a bank and posts itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.backends.llm.offline.voice import likeness, shingles
from engine.ports.llm import (
    AnswerPost,
    BankedPost,
    ChannelInfo,
    Chosen,
    ClosedTalk,
    LlmPhase,
    NewRoot,
    PruneContext,
    RememberContext,
    Remembered,
    SkipPost,
)
from tests.core.offline_society import (
    answer,
    chosen,
    entry,
    load_roster,
    persona,
    post_context,
    posted,
    profile_of,
    request,
    scan_context,
)

KELP = persona("kelp", "- sugar kelp\n- drying racks", "Very interested in tidal power")
MILL = persona("mill", "- tidal power\n- stone-ground flour")
CHOIR = persona("choir", "- sea shanties\n- brass concerts")

FLOUR = entry(1, MILL.bot_name, "Who could use tidal power at three in the night?")
SHANTIES = entry(2, CHOIR.bot_name, "We look for tenors who know sea shanties.")
RACKS = entry(3, "Ada", "Are there drying racks to spare for sugar kelp?", is_bot=False)


def test_scan_chooses_posts_that_share_rare_terms() -> None:
    context = scan_context(KELP, (FLOUR, SHANTIES, RACKS), (MILL, CHOIR))
    assert chosen(context) == (1, 3)
    assert chosen(scan_context(CHOIR, (FLOUR, SHANTIES, RACKS), (MILL, KELP))) == (2,)


def test_scan_passes_over_what_a_refusal_bites() -> None:
    context = scan_context(KELP, (FLOUR, RACKS), (MILL,))
    refusing = replace(
        KELP, private_instructions="Very interested in tidal power. No stone-ground flour."
    )
    assert chosen(context) == (1, 3)
    assert chosen(replace(context, persona=refusing)) == (3,)


def test_scan_passes_over_a_person_s_post_on_a_refused_topic() -> None:
    refusing = replace(KELP, private_instructions="Avoid drying racks")
    assert chosen(scan_context(KELP, (RACKS,))) == (3,)
    assert chosen(scan_context(refusing, (RACKS,))) == ()


def test_scan_of_nothing_chooses_nothing() -> None:
    assert chosen(scan_context(KELP, ())) == ()


def test_scan_follows_the_profiles_when_two_are_swapped() -> None:
    roster = load_roster()
    posts = tuple(
        entry(n, who.bot_name, _root_of(who.slug).text)
        for n, who in enumerate(roster.personas.values(), start=1)
    )
    everybody = tuple(roster.personas.values())
    one, two = roster.personas["goat-dairy"], roster.personas["ferry"]
    swapped = replace(
        one,
        public_profile=two.public_profile,
        private_instructions=two.private_instructions,
    )
    before = chosen(scan_context(one, posts, everybody))
    assert before != chosen(scan_context(swapped, posts, everybody))
    assert chosen(scan_context(swapped, posts, everybody)) == chosen(
        scan_context(two, posts, everybody)
    )


def _root_of(slug: str) -> NewRoot:
    roster = load_roster()
    who = roster.personas[slug]
    for turn in range(1, 9):
        root = posted(post_context(who, partners=roster.mates(slug)), turn=turn)
        if isinstance(root, NewRoot):
            return root
    raise AssertionError(slug)


def _pruned(*texts: str, n_keep: int) -> tuple[int, ...]:
    posts = tuple(entry(n, "Ada", text, is_bot=False) for n, text in enumerate(texts, start=1))
    context = PruneContext(persona=KELP, posts=posts, n_keep=n_keep)
    decision = answer(request(LlmPhase.PRUNE, context)).decision
    assert isinstance(decision, Chosen)
    return decision.seqs


def test_prune_keeps_the_best_in_the_order_shown() -> None:
    texts = ("tea", "sugar kelp", "coffee", "drying racks for sugar kelp", "rain")
    assert _pruned(*texts, n_keep=2) == (2, 4)
    assert _pruned(*texts, n_keep=3) == (1, 2, 4)
    assert _pruned(*texts, n_keep=9) == (1, 2, 3, 4, 5)


def test_post_answers_the_best_banked_post() -> None:
    bank = (
        BankedPost(entry=SHANTIES, author=profile_of(CHOIR)),
        BankedPost(entry=FLOUR, author=profile_of(MILL)),
    )
    decision = posted(post_context(KELP, bank=bank))
    assert isinstance(decision, AnswerPost)
    assert decision.seq == FLOUR.seq
    assert "tidal power" in decision.text
    assert re.search("sugar kelp|drying racks", decision.text)


def test_post_answers_a_person_by_name_and_topic() -> None:
    decision = posted(post_context(KELP, bank=(BankedPost(entry=RACKS, author=None),)))
    assert isinstance(decision, AnswerPost)
    assert "Ada" in decision.text
    assert re.search("drying|racks|kelp", decision.text)


def test_post_does_not_answer_what_a_refusal_bites() -> None:
    bank = (BankedPost(entry=FLOUR, author=profile_of(MILL)),)
    refusing = replace(KELP, private_instructions="Avoid tidal power")
    assert isinstance(posted(post_context(KELP, bank=bank, may_start_root=False)), AnswerPost)
    assert posted(post_context(refusing, bank=bank, may_start_root=False)) == SkipPost(
        reason="No post in the bank fits, and no new root may be started."
    )


def test_post_without_a_channel_is_skipped() -> None:
    assert isinstance(posted(post_context(KELP, channels=())), SkipPost)


def test_root_names_own_term_and_one_of_a_partner_and_fits_its_channel() -> None:
    channels = (
        ChannelInfo(name="music", topic="Shanties and brass"),
        ChannelInfo(name="harvest", topic="Kelp and power"),
    )
    roots = [
        posted(post_context(KELP, partners=(MILL,), channels=channels), turn=turn)
        for turn in range(40)
    ]
    written = [root for root in roots if isinstance(root, NewRoot)]
    assert {root.channel for root in written} == {"harvest"}
    assert all(re.search("sugar kelp|drying racks", root.text) for root in written)
    assert all(re.search("tidal power|stone-ground flour", root.text) for root in written)
    assert {root.tag for root in written} == {None, "mill"}
    assert all(("@MillBot" in root.text) == (root.tag == "mill") for root in written)
    assert 30 <= len(written) < 40


def test_root_without_partners_asks_for_the_channel_s_topic() -> None:
    channels = (ChannelInfo(name="harvest", topic="Seaweed ovens"),)
    root = posted(post_context(KELP, channels=channels))
    assert isinstance(root, NewRoot)
    assert root.tag is None
    assert "seaweed ovens" in root.text


def test_root_is_not_written_for_a_refused_partner() -> None:
    refusing = replace(KELP, private_instructions="Avoid tidal power")
    for turn in range(20):
        root = posted(post_context(refusing, partners=(MILL, CHOIR)), turn=turn)
        assert isinstance(root, SkipPost) or "tidal" not in root.text


def test_root_prefers_a_partner_that_memory_does_not_name() -> None:
    twin = persona("twin", MILL.public_profile)
    tags = [
        root.tag
        for turn in range(60)
        if isinstance(
            root := posted(
                post_context(KELP, partners=(MILL, twin), memory="- With MillBot: done"), turn=turn
            ),
            NewRoot,
        )
    ]
    assert tags.count("twin") > 3 * tags.count("mill")


def test_root_chooses_among_a_bounded_sample_of_many_partners() -> None:
    crowd = tuple(persona(f"p{n}", "- tidal power") for n in range(60))
    root = posted(post_context(KELP, partners=crowd))
    assert isinstance(root, NewRoot)
    assert "tidal power" in root.text


def test_roots_in_a_row_are_never_alike_and_end_when_all_is_said() -> None:
    who = load_roster().personas["ferry"]
    recent: tuple[str, ...] = ()
    skips: list[str] = []
    for turn in range(60):
        root = posted(post_context(who, recent=recent[-20:]), turn=turn)
        if isinstance(root, SkipPost):
            skips.append(root.reason)
            continue
        assert isinstance(root, NewRoot)
        assert all(likeness(shingles(root.text), shingles(old)) < 0.8 for old in recent[-20:])
        recent = (*recent, root.text)
    assert len(recent) > 20
    few = replace(who, public_profile="- sugar kelp")
    assert posted(post_context(few, recent=("All about sugar kelp",)), turn=1) == SkipPost(
        reason="The last messages said all there is to say."
    )
    assert "Nothing is urgent enough to be said now." in skips


def _remembered(memory: str, *talks: ClosedTalk) -> str:
    context = RememberContext(persona=KELP, memory=memory, talks=talks)
    decision = answer(request(LlmPhase.REMEMBER, context)).decision
    assert isinstance(decision, Remembered)
    return decision.text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("proposal", "agreed on a proposal"),
        ("no_proposal", "ended without a proposal"),
        ("timeout", "ran out of messages"),
        ("lost", "was cut off"),
        ("odd", "ended as odd"),
    ],
)
def test_memory_gains_a_line_a_talk(outcome: str, words: str) -> None:
    history = (entry(1, KELP.bot_name, "Hello"), FLOUR)
    talk = ClosedTalk(partner="MillBot", outcome=outcome, history=history)
    assert _remembered("- Old line", talk) == (
        f"- Old line\n- With MillBot on tidal: {words} after 2 messages."
    )


def test_memory_stays_under_300_words_and_drops_the_oldest() -> None:
    talk = ClosedTalk(partner="@Mill\x00Bot", outcome="proposal", history=())
    memory = "\n".join(f"- Line {n} " + "word " * 20 for n in range(40)) + "\n" + "long " * 400
    text = _remembered(memory, talk)
    assert 200 < len(text.split()) < 300
    assert "Line 39" in text
    assert "Line 0 " not in text
    assert text.endswith(
        "- With Mill Bot on nothing in particular: agreed on a proposal after 0 messages."
    )
