"""The moves and texts of the offline LLM in a thread."""

from __future__ import annotations

import re
import statistics
from dataclasses import replace

import pytest

from engine.ports.llm import Entry, Move, Persona, Stage, Written
from tests.core.offline_society import (
    entry,
    load_roster,
    moves_at,
    persona,
    profile_of,
    reply_context,
    wrote,
)

KELP = persona("kelp", "- sugar kelp\n- drying racks", "Very interested in tidal power")
MILL = persona("mill", "- tidal power\n- stone-ground flour\n- drying barley")
CHOIR = persona("choir", "- sea shanties\n- brass concerts")
OWN = "sugar kelp|drying racks"
THEIRS = "tidal power|stone-ground flour|drying barley"
ROOT = entry(1, "MillBot", "Who wants tidal power?")
MINE = entry(2, "KelpBot", "We might.")
SUMMARY = entry(3, "MillBot", "Summary: tidal power for drying racks.")
SEEDS = range(1, 41)


def replies(
    who: Persona = KELP,
    partner: Persona | None = MILL,
    *,
    number: int,
    summary: Entry | None = None,
    history: tuple[Entry, ...] = (ROOT,),
    guidance: str = "",
) -> list[Written]:
    context = reply_context(
        who, partner, history, number=number, summary=summary, guidance=guidance
    )
    return [wrote(context, seed=seed) for seed in SEEDS]


def moves_of(written: list[Written]) -> set[Move]:
    return {reply.move for reply in written}


def test_reply_explores_with_a_question_and_an_offer() -> None:
    for reply in replies(number=2):
        assert reply.move is Move.CONTINUE
        assert "?" in reply.text
        assert re.search(OWN, reply.text)
        assert re.search(THEIRS, reply.text)


def test_reply_decides_with_a_sum_an_open_point_or_a_proposal() -> None:
    written = replies(number=5)
    assert moves_of(written) == {Move.CONTINUE, Move.PROPOSE}
    for reply in written:
        if reply.move is Move.PROPOSE:
            assert "First step: " in reply.text
            assert "Open question: " in reply.text
            assert re.search(OWN, reply.text)
            assert re.search(THEIRS, reply.text)


def test_reply_declines_what_does_not_fit_and_says_so() -> None:
    written = replies(partner=CHOIR, number=8, history=(entry(1, "ChoirBot", "Hello"),))
    assert Move.PROPOSE not in moves_of([r for r in written if r.move is not Move.CONTINUE][:1])
    declined = [reply for reply in written if reply.move is Move.DECLINE]
    assert len(declined) > len(SEEDS) / 2
    assert all(re.search("sea shanties|brass concerts", reply.text) for reply in declined)


def test_reply_to_a_summary_accepts_what_fits() -> None:
    written = replies(number=6, summary=SUMMARY, history=(ROOT, MINE, SUMMARY))
    accepted = [reply for reply in written if reply.move is Move.ACCEPT]
    assert len(accepted) > len(SEEDS) / 4
    assert Move.DECLINE in moves_of(written)


def test_reply_to_a_summary_declines_what_does_not_fit() -> None:
    summary = entry(3, "ChoirBot", "Summary: shanties beside drying racks.")
    written = replies(partner=CHOIR, number=6, summary=summary, history=(ROOT, MINE, summary))
    assert Move.DECLINE in moves_of(written)
    assert Move.ACCEPT not in moves_of(written)


def test_reply_to_an_empty_summary_goes_on_with_a_counter() -> None:
    summary = entry(3, "MillBot", "Yes?")
    written = replies(number=6, summary=summary, history=(ROOT, MINE, summary))
    assert Move.ACCEPT not in moves_of(written)
    assert any("First step: " in r.text for r in written if r.move is Move.CONTINUE)


def test_reply_to_an_early_summary_may_go_on_exploring() -> None:
    written = replies(number=3, summary=SUMMARY, history=(ROOT, MINE, SUMMARY))
    assert moves_of(written) == {Move.ACCEPT, Move.CONTINUE}


def test_reply_concludes_or_never_will() -> None:
    summary = entry(11, "MillBot", "Summary: tidal power for drying racks.")
    written = replies(number=12, summary=summary, history=(ROOT, MINE, summary))
    assert moves_of(written) == {Move.ACCEPT, Move.DECLINE, Move.PROPOSE}
    assert moves_of(replies(number=12)) == {Move.DECLINE, Move.PROPOSE}


@pytest.mark.parametrize("number", [2, 6, 12])
def test_refusal_bites_and_without_it_the_talk_goes_on(number: int) -> None:
    refusing = replace(KELP, private_instructions="We are not interested in stone-ground flour!")
    for reply in replies(refusing, number=number):
        assert reply.move is Move.DECLINE
        assert "stone-ground flour" in reply.text
        assert "not interested in stone-ground flour" not in reply.text.lower()
    assert moves_of(replies(number=number)) - {Move.DECLINE}


def test_refusal_bites_on_what_the_partner_says_in_the_thread() -> None:
    refusing = replace(KELP, private_instructions="Avoid brass concerts")
    said = entry(1, "MillBot", "There will be a brass concert as well.")
    own = entry(1, "KelpBot", "There will be a brass concert as well.")
    assert moves_of(replies(refusing, number=3, history=(said,))) == {Move.DECLINE}
    assert moves_of(replies(refusing, number=3, history=(own,))) == {Move.CONTINUE}


def test_refusal_of_a_person_s_topic_bites_while_nobody_else_is_there() -> None:
    refusing = replace(KELP, private_instructions="Avoid brass concerts")
    asked = entry(1, "Ada", "Will you come to our brass concerts?", is_bot=False)
    written = replies(refusing, None, number=2, history=(asked,))
    assert moves_of(written) == {Move.DECLINE}
    assert all("brass concerts" in reply.text for reply in written)


def test_reply_speaks_to_a_person_who_spoke_last() -> None:
    asked = entry(3, "Ada L.", "What would the hydrophones cost us?", is_bot=False)
    for reply in replies(number=4, history=(ROOT, MINE, asked)):
        assert "Ada L." in reply.text
        assert "hydrophones" in reply.text
    for reply in replies(number=4, history=(asked, MINE, ROOT)):
        assert "hydrophones" not in reply.text


def test_reply_to_a_person_alone_goes_on_until_it_must_end() -> None:
    asked = entry(1, "Ada", "Who knows hydrophones?", is_bot=False)
    written = replies(partner=None, number=2, history=(asked,))
    assert moves_of(written) == {Move.CONTINUE}
    assert all("Ada" in r.text and "hydrophones" in r.text for r in written)
    ended = replies(partner=None, number=12, history=(asked,))
    assert moves_of(ended) == {Move.DECLINE}
    again = replies(partner=None, number=3, history=(asked, MINE))
    assert moves_of(again) == {Move.CONTINUE}


def test_reply_to_a_person_alone_offers_what_is_nearest_to_the_question() -> None:
    asked = entry(1, "Ada", "Who has racks for drying nets?", is_bot=False)
    assert all("drying racks" in r.text for r in replies(partner=None, number=2, history=(asked,)))


def test_reply_shows_the_guidance_of_a_review() -> None:
    note = "Please start with the @MillBot <b>barley</b> samples"
    for reply in replies(number=5, guidance=note):
        assert "barley" in reply.text
        assert "samples" in reply.text
        assert not set(reply.text) & set("@<>")


def test_reply_is_forced_into_the_moves_that_are_allowed() -> None:
    for move in Move:
        context = reply_context(KELP, MILL, (ROOT,), number=6, moves=(move,))
        assert wrote(context).move is move


def test_swapped_profiles_change_the_decision() -> None:
    history = (entry(1, "ChoirBot", "Hello"),)
    swapped = replace(CHOIR, public_profile=MILL.public_profile)
    assert Move.PROPOSE in moves_of(replies(partner=swapped, number=7, history=history))
    decided = [
        wrote(reply_context(KELP, CHOIR, history, number=7), seed=seed).move for seed in SEEDS
    ]
    assert decided.count(Move.DECLINE) > decided.count(Move.PROPOSE)


def test_private_sentences_are_never_quoted() -> None:
    roster = load_roster()
    for who, mate in roster.pairs():
        lines = [
            line.lstrip("- ")
            for line in who.private_instructions.splitlines()
            if line.startswith("- ")
        ]
        for number in (2, 5, 12):
            context = reply_context(who, mate, (entry(1, mate.bot_name, "Hello"),), number=number)
            text = wrote(context).text
            assert lines
            assert not [line for line in lines if line in text]


def test_replies_are_short_and_sensible_in_length() -> None:
    lengths = [
        len(reply.text.split())
        for number in (2, 5, 8, 12)
        for reply in replies(number=number, guidance="Look at the barley")
    ]
    assert min(lengths) >= 30
    assert max(lengths) <= 120
    assert 40 < statistics.mean(lengths) < 90


def test_moves_of_the_stages_are_as_a_thread_offers_them() -> None:
    assert moves_at(Stage.CONCLUDE, SUMMARY) == (Move.PROPOSE, Move.DECLINE, Move.ACCEPT)
    assert profile_of(KELP).public_profile == KELP.public_profile
