"""Which terms, wishes and refusals the offline LLM reads out of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.llm.offline.fit import pairing, refusal_of
from engine.backends.llm.offline.terms import best_term, noun_phrase, noun_phrases, terms_of
from engine.backends.llm.offline.wishes import wishes_of
from engine.backends.llm.offline.words import stem, words_of

PROFILE = """# Sound House: Public Profile

**Head:** Principal investigator
**Institution:** Example House

Our people tape what the sea says. RNA-like patterns appear, says QuietNet.

## Methods
- **Tide tapes**: recorded at night
- The long-range hydrophones (array A)
- Whale song indexing and sorting of recordings for the archive
- we do many other things
- Signal
- Alder's method
Keywords: tide tapes, sea noise; quiet boats

## Keywords

sea noise maps, cryo-ET
"""


def test_terms_come_from_bullets_and_keywords_without_boilerplate() -> None:
    assert terms_of(PROFILE).phrases == (
        "tide tapes",
        "sea noise",
        "quiet boats",
        "cryo-ET",
        "long-range hydrophones",
        "whale song indexing",
        "signal",
        "Alder's method",
    )


def test_terms_of_prose_are_its_names_and_longer_words() -> None:
    terms = terms_of("We restore harmoniums and pianolas.\nNow with MidiTap, in our Workshop")
    assert terms.phrases == ("MidiTap", "restore", "harmoniums", "pianolas")


def test_terms_count_names_with_a_rare_shape_double() -> None:
    words = terms_of(PROFILE).words
    assert (words["quietnet"], words["cryo-et"], words["tape"]) == (2.0, 2.0, 1.0)


@pytest.mark.parametrize("text", ["", " \n", "# Title only", "- \n- ()\n- the and of", "\x00@@"])
def test_terms_of_a_profile_that_says_nothing_are_empty(text: str) -> None:
    assert terms_of(text).phrases == ()


@pytest.mark.parametrize(
    ("raw", "phrase"),
    [
        ("**Fog desk**: three people", "Fog desk"),
        ("[kelp ash](http://example.org) for fields", "kelp ash for fields"),
        ("a very old and extremely heavy rope walk under the tar roof", ""),
        ("Stories collected and written down by many hands", ""),
        ("steam-bent ribs in larch, oak or ash", "steam-bent ribs in larch"),
        ("@fishers of `kelp` <script>", "fishers of kelp"),
        ("data", ""),
    ],
)
def test_noun_phrase_is_the_opening_of_a_list_item(raw: str, phrase: str) -> None:
    assert noun_phrase(raw) == phrase


def test_noun_phrases_split_a_topic() -> None:
    assert noun_phrases("Fog, tides and old hulls") == ("fog", "tides", "old hulls")


@given(st.text())
def test_noun_phrase_of_anything_cannot_ping_or_format(raw: str) -> None:
    assert not set(noun_phrase(raw)) & set("@`*<>{}[]\n\x00")


@pytest.mark.parametrize(
    ("token", "word"),
    [
        ("Berries", "berry"),
        ("boxes", "box"),
        ("glass", "glass"),
        ("keeper's", "keeper"),
        ("bus", "bus"),
        ("FoxO", "foxo"),
    ],
)
def test_stem_drops_plural_and_possession(token: str, word: str) -> None:
    assert stem(token) == word


def test_words_weigh_rare_shapes_most_and_filler_least() -> None:
    weights = words_of("The kelp project of KLF4 and 12 hydrographers").weights
    assert weights == {"kelp": 1.0, "project": 0.1, "klf4": 2.0, "hydrographer": 1.2}


def test_best_term_prefers_what_is_liked() -> None:
    assert best_term("bring the kelp and the rope", {}) == "kelp"
    assert best_term("bring the kelp and the rope", {"rope": 1.0}) == "rope"
    assert best_term("and so on", {}) == ""


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("- Not interested in foghorn concerts, the crew sleeps", [{"foghorn", "concert"}]),
        ("Less interested in RNA ensembles (too far)", [{"rna", "ensemble"}]),
        ("No beeswax coatings, a rind has to breathe", [{"beeswax", "coating"}]),
        ("Please avoid kelp ash near the stones", [{"kelp", "ash"}]),
        ("Never very interested in shipping poems or opera", [{"shipping", "poem"}, {"opera"}]),
        ("We do not want drones.", [{"drone"}]),
        ("Stay away from cryo-ET", [{"cryo-et"}]),
        ("No specific instructions yet. Use default quality.", []),
        ("Interested in kelp. There is no hurry.", []),
    ],
)
def test_wishes_refuse_what_is_said_to_be_unwanted(sentence: str, words: list[set[str]]) -> None:
    assert [set(refusal.words) for refusal in wishes_of(sentence).refusals] == words


def test_wishes_raise_what_is_wished_for() -> None:
    wishes = wishes_of("# Topic priorities\n1. Kelp ash\n# Style\n- Be warm\nSeeking whey.")
    assert set(wishes.words) == {"kelp", "ash", "whey"}


def test_fit_rises_with_a_private_wish() -> None:
    own, other = "- sugar kelp\n- drying racks", "- kelp broth\n- school lunches"
    plain = pairing(own, "", other).fit
    assert 0 < plain < pairing(own, "Very interested in school lunches", other).fit


@pytest.mark.parametrize(
    ("private", "other", "refused"),
    [
        ("Not interested in foghorn concerts", "- Foghorn concerts at night", "foghorn concerts"),
        ("Not interested in foghorn concerts", "- brass concerts\n- a foghorn", ""),
        ("Not interested in cryo-ET", "We do cryo-ET.", "cryo-ET"),
        ("Not interested in cryo-ET of sugar kelp", "We do cryo-ET.", "cryo-ET"),
        ("Not interested in opera", "We once saw an opera.", ""),
        ("Not interested in opera", "Opera is ours. We sing opera.", "opera"),
        ("Not interested in sugar kelp", "- sugar kelp", "sugar kelp"),
        ("", "- Foghorn concerts at night", ""),
    ],
)
def test_refusal_bites_when_the_other_side_is_about_it(
    private: str, other: str, refused: str
) -> None:
    assert pairing("- sugar kelp\n- drying racks", private, other).refused == refused


def test_refusal_bites_on_what_the_other_side_says() -> None:
    private = "Not interested in foghorn concerts"
    assert refusal_of("", private, "", ("Come to our Foghorn concert!",)) == "foghorn concert"
    assert refusal_of("", private, "", ("Come to our concert!", "Mind the foghorn.")) == ""
