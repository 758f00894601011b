"""Laws of the offline LLM over whole sets of talks of the demo roster."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.backends.clock import VirtualClock, VirtualLoop
from engine.backends.llm.offline import OfflineLlm
from engine.backends.llm.offline.fit import pairing
from engine.backends.llm.offline.terms import terms_of
from engine.backends.llm.offline.voice import likeness, shingles
from engine.ports.llm import LlmPhase
from tests.core.offline_society import (
    AT,
    DEMO_ROSTER,
    Talk,
    all_talks,
    answer,
    entry,
    load_roster,
    persona,
    reply_context,
    request,
    rows,
    scan_context,
)


@pytest.fixture(scope="module")
def talks() -> list[Talk]:
    return all_talks(load_roster(), seed=1)


def test_every_outcome_occurs(talks: list[Talk]) -> None:
    outcomes = Counter(talk.outcome for talk in talks)
    assert {"proposal", "no_proposal", "timeout"} <= outcomes.keys()
    assert outcomes["proposal"] >= 10


def test_no_two_messages_are_equal(talks: list[Talk]) -> None:
    texts = [text for talk in talks for _, text in talk.messages]
    assert len(texts) > 300
    assert len(set(texts)) == len(texts)


def test_no_message_is_nearly_equal_to_the_author_s_last_twenty(talks: list[Talk]) -> None:
    said: dict[str, list[frozenset[tuple[str, str, str]]]] = {}
    for talk in talks:
        for slug, text in talk.messages:
            new = shingles(text)
            assert all(likeness(new, old) < 0.8 for old in said.get(slug, [])[-20:])
            said.setdefault(slug, []).append(new)


def test_nine_in_ten_messages_name_a_term_of_both_sides(talks: list[Talk]) -> None:
    named = [
        all(
            any(term.lower() in text.lower() for term in terms_of(side.public_profile).phrases)
            for side in talk.pair
        )
        for talk in talks
        for _, text in talk.messages
    ]
    assert sum(named) / len(named) >= 0.9


def test_no_refused_pair_comes_to_a_proposal(talks: list[Talk]) -> None:
    refused = [
        talk
        for talk in talks
        for one, two in (talk.pair, talk.pair[::-1])
        if pairing(one.public_profile, one.private_instructions, two.public_profile).refused
    ]
    assert len(refused) >= 20
    assert {talk.outcome for talk in refused} <= {"no_proposal", "skipped"}


def test_swapping_two_profiles_changes_the_talks() -> None:
    roster = load_roster()
    one, two = roster.personas["goat-dairy"], roster.personas["ferry"]
    personas = roster.personas | {
        "goat-dairy": replace(
            one,
            public_profile=two.public_profile,
            private_instructions=two.private_instructions,
        ),
        "ferry": replace(
            two,
            public_profile=one.public_profile,
            private_instructions=one.private_instructions,
        ),
    }
    agreed = _agreements(all_talks(roster, seed=2))
    swapped = _agreements(all_talks(replace(roster, personas=personas), seed=2))
    assert agreed != swapped
    untouched = {pair for pair in agreed if not pair & {"goat-dairy", "ferry"}}
    assert untouched


def _agreements(talks: list[Talk]) -> set[frozenset[str]]:
    return {
        frozenset(who.slug for who in talk.pair) for talk in talks if talk.outcome == "proposal"
    }


def _digest(seed: int) -> str:
    roster = load_roster()
    small = replace(
        roster,
        personas={slug: roster.personas[slug] for slug in list(roster.personas)[:4]},
    )
    texts = [text for talk in all_talks(small, seed) for _, text in talk.messages]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def test_answers_are_the_same_in_another_process() -> None:
    code = "from tests.core.test_offline_society import _digest; print(_digest(5))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": salt},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for salt in ("1", "2")
    }
    assert found == {_digest(5)}
    assert found != {_digest(6)}


def test_latency_is_log_normal_around_its_median_and_virtual() -> None:
    async def waits(latency_seconds: float) -> list[float]:
        model = OfflineLlm(1, VirtualClock(AT), latency_seconds)
        loop = asyncio.get_running_loop()
        found = []
        for turn in range(201):
            before = loop.time()
            await model.complete(request(LlmPhase.SCAN, scan_context(persona("a"), ()), turn=turn))
            found.append(loop.time() - before)
        return sorted(found)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        found = runner.run(waits(5))
        assert 4 < found[100] < 6
        assert found[20] < 2.5
        assert found[180] > 10
        assert set(runner.run(waits(0))) == {0.0}


def test_usage_is_about_a_token_for_four_bytes_and_free() -> None:
    who, partner = persona("a", "x" * 400, "y" * 40), persona("b", "z" * 400)
    context = reply_context(who, partner, (entry(1, "BBot", "ü" * 80),), guidance="")
    told = answer(request(LlmPhase.REPLY, context, thread=1))
    assert told.usage.input_tokens == 250
    assert told.usage.output_tokens > 20
    assert told.usage.cost_nano_usd == 0
    assert (told.model, told.prompt_version, told.finish_reason) == (
        "offline",
        "offline-1",
        "end_turn",
    )


def test_demo_roster_is_what_the_first_visitor_is_promised() -> None:
    roster = load_roster()
    channels = rows(DEMO_ROSTER / "channels.csv")
    private = [row["agent_id"] for row in channels if row["visibility"] == "private"]
    assert len(roster.personas) == 14
    assert len({cohort for own in roster.cohorts.values() for cohort in own}) == 4
    assert [slug for slug, own in roster.cohorts.items() if not own] == ["lost-property"]
    assert sum(len(own) == 2 for own in roster.cohorts.values()) == 8
    assert len(roster.channels) == 5
    assert len(private) == 3
    for who in roster.personas.values():
        assert 150 <= len(who.public_profile.split()) <= 300
        assert len(terms_of(who.public_profile).phrases) >= 8
        assert who.private_instructions
