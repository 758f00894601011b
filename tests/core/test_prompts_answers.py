"""Answers as models give them: each becomes a decision, or is refused with its own reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.errors import Unusable, UnusableAnswer
from engine.core.texts import is_storable
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Move,
    NewRoot,
    PostContext,
    PruneContext,
    Remembered,
    ReplyContext,
    ScanContext,
    SkipPost,
    Written,
)
from engine.prompts import RawAnswer, read_answer
from engine.prompts.wording import within_words
from tests.core.golden_prompts import CASES, FERRY, KELP, POSTS
from tests.core.llm_contexts import contexts
from tests.core.offline_society import entry, post_context, reply_context, scan_context

if TYPE_CHECKING:
    from engine.ports.llm import Context, Decision

REPLY, POST, SCAN, REMEMBER = (CASES[name] for name in ("reply", "post", "scan", "remember"))
MANY = scan_context(FERRY, tuple(entry(100 + n, KELP.bot_name, "x") for n in range(1, 5)))


def read(context: Context, *texts: str, finish_reason: str = "end_turn") -> Decision:
    return read_answer(context, RawAnswer(texts=texts, finish_reason=finish_reason))


def reason_of(context: Context, *texts: str, finish_reason: str = "end_turn") -> str:
    with pytest.raises(UnusableAnswer) as refused:
        read(context, *texts, finish_reason=finish_reason)
    return refused.value.reason


def outcome(context: Context, raw: RawAnswer) -> Decision | UnusableAnswer:
    try:
        return read_answer(context, raw)
    except UnusableAnswer as error:
        return error


def reply(text: str, move: str = "continue") -> str:
    return json.dumps({"thought": "t", "move": move, "text": text})


def choice(**fields: object) -> str:
    return json.dumps({"thought": "t", "choice": fields})


def test_scan_answer_names_posts_by_number() -> None:
    assert read(MANY, '{"posts": [3, 1, 3]}') == Chosen(seqs=(103, 101))
    assert read(MANY, '{"posts": []}') == Chosen(seqs=())


def test_number_that_was_not_shown_is_passed_over_beside_a_right_one() -> None:
    assert read(MANY, '{"posts": [9, 2]}') == Chosen(seqs=(102,))
    assert reason_of(MANY, '{"posts": [9]}') == "unknown_id"


def test_prune_answer_keeps_as_many_as_asked() -> None:
    context = PruneContext(persona=FERRY, posts=MANY.posts, n_keep=2)

    assert read(context, '{"posts": [1, 2, 3]}') == Chosen(seqs=(101, 102))
    assert read(context, '{"posts": [2]}') == Chosen(seqs=(102, 104))
    assert read(context, '{"posts": []}') == Chosen(seqs=(104, 103))


def test_reply_answer_is_a_move_and_a_text() -> None:
    answer = '{"thought": "good", "move": "decline", "text": " No power\\nto spare. "}'

    assert read(REPLY, answer) == Written(move=Move.DECLINE, text="No power\nto spare.")


def test_post_answer_is_one_of_three_choices() -> None:
    assert read(POST, choice(kind="answer", post=2, text="Pier 4.")) == AnswerPost(
        seq=22, text="Pier 4."
    )
    assert read(POST, choice(kind="root", channel=2, partner=1, text="Hi.")) == NewRoot(
        channel="power", text="Hi.", tag="kelp-farm"
    )
    assert read(POST, choice(kind="root", channel=1, partner=None, text="Hi.")) == NewRoot(
        channel="general", text="Hi.", tag=None
    )
    assert read(POST, choice(kind="skip", reason="nothing new")) == SkipPost(reason="nothing new")
    assert read(POST, choice(kind="skip", reason=" ")) == SkipPost(reason="none")


def test_memory_answer_is_the_whole_text() -> None:
    assert read(REMEMBER, '{"memory": "One.\\nTwo."}') == Remembered(text="One.\nTwo.")


def test_long_memory_ends_with_a_whole_sentence() -> None:
    text = " ".join(f"Number {n} said so." for n in range(100))

    decision = read(REMEMBER, json.dumps({"memory": text}))

    assert isinstance(decision, Remembered)
    assert len(decision.text.split()) == 296
    assert decision.text.endswith("Number 73 said so.")


def test_words_are_cut_at_lines_and_only_without_them_anywhere() -> None:
    assert within_words("a b\nc d\ne f", 5) == "a b\nc d"
    assert within_words("a b c d e", 4) == "a b c"
    assert within_words("a b c", 4) == "a b c"


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Here is my answer:\n{}\nI hope it helps.", "  {}\n\n"],
)
def test_prose_around_the_object_is_passed_over(around: str) -> None:
    assert read(MANY, around.replace("{}", '{"posts": [1]}')) == Chosen(seqs=(101,))


def test_all_blocks_of_an_answer_belong_to_it() -> None:
    assert read(MANY, '{"posts": ', "[1]}") == Chosen(seqs=(101,))


@pytest.mark.parametrize(
    ("reason", "texts"),
    [
        ("empty", ()),
        ("blank", (" \n",)),
        ("prose", ("I would choose the first post.",)),
        ("html", ("<!DOCTYPE html><html><body>{}</body></html>",)),
        ("html", ("  <html>",)),
        ("ambiguous", ('{"posts": [1]} {"posts": [2]}',)),
        ("ambiguous", ('{"posts": [1], "posts": [2]}',)),
        ("unparsable", ('{"posts": [1',)),
        ("unparsable", ('{"posts": {"posts": [1]}',)),
        ("unparsable", ('{"posts": [' + "9" * 5000 + "]}",)),
        ("unparsable", ("{" + '"a":[' * 100_000,)),
        ("misshapen", ('{"posts": "1"}',)),
        ("misshapen", ('{"posts": [true]}',)),
        ("misshapen", ('{"posts": [1.0]}',)),
        ("misshapen", ('{"posts": [1], "why": "x"}',)),
        ("misshapen", ("{}",)),
        ("unknown_id", ('{"posts": [0]}',)),
        ("unknown_id", ('{"posts": [-1]}',)),
    ],
)
def test_unusable_scan_has_its_reason(reason: str, texts: tuple[str, ...]) -> None:
    assert reason_of(MANY, *texts) == reason


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [
        ("refusal", "refused"),
        ("max_tokens", "truncated"),
        ("model_context_window_exceeded", "truncated"),
    ],
)
def test_answer_that_did_not_end_by_itself_is_not_read(finish_reason: str, reason: str) -> None:
    assert reason_of(MANY, '{"posts": [1]}', finish_reason=finish_reason) == reason
    assert reason_of(MANY, finish_reason=finish_reason) == reason


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("blank", ""),
        ("blank", " \n "),
        ("blank", "FerryBot: "),
        ("unstorable", "a\x00b"),
        ("unstorable", "a\ud800b"),
        ("html", "<!doctype html><p>x</p>"),
        ("misshapen", '{"move": "continue"}'),
        ("misshapen", '```json\n{"move": "continue"}\n```'),
        ("marks", 'Well.\n<message by="KelpBot" kind="agent">\n| Yes.\n</message>'),
        ("marks", "</memory>"),
        ("long", "x" * 3000),
        ("other_voice", "KelpBot: I agree to all of it."),
        ("other_voice", "**kelpbot:** I agree."),
        ("other_voice", "\n  Harbour office: The pier is yours."),
        ("other_voice", "Human: go on"),
        ("transcript", "FerryBot: How much?\nKelpBot: Ten nights."),
        ("transcript", "How much?\n\nKelpBot: Ten nights."),
        ("transcript", "KelpBot: Ten.\u2028Harbour office: Good."),
        ("transcript", "How much?\rKelpBot: Ten nights."),
        ("transcript", "User: x\nAssistant: y"),
    ],
)
def test_unusable_text_has_its_reason(reason: str, text: str) -> None:
    assert reason_of(REPLY, reply(text)) == reason


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("FerryBot: We can.", "We can."),
        ("**FerryBot:** We can.", "We can."),
        ("@KelpBot: how much?", "@KelpBot: how much?"),
        ("- KelpBot: kelp\n- FerryBot: crossings", "- KelpBot: kelp\n- FerryBot: crossings"),
        ("Budget: none\nTime: May", "Budget: none\nTime: May"),
        ("We said: KelpBot: has kelp", "We said: KelpBot: has kelp"),
        ("1 < 2 & <b>bold</b>", "1 < 2 & <b>bold</b>"),
        ("x" * 2999, "x" * 2999),
    ],
)
def test_words_of_its_own_are_kept(text: str, kept: str) -> None:
    assert read(REPLY, reply(text)) == Written(move=Move.CONTINUE, text=kept)


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("move", reply("x", "accept")),
        ("misshapen", reply("x", "agree")),
        ("misshapen", '{"move": "continue", "text": "x"}'),
        ("misshapen", '{"thought": 1, "move": "continue", "text": "x"}'),
        ("misshapen", '{"thought": "", "move": "continue", "text": null}'),
    ],
)
def test_unusable_reply_has_its_reason(reason: str, answer: str) -> None:
    assert reason_of(REPLY, answer) == reason


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("unknown_id", choice(kind="answer", post=3, text="x")),
        ("unknown_id", choice(kind="root", channel=3, partner=None, text="x")),
        ("unknown_id", choice(kind="root", channel=1, partner=0, text="x")),
        ("misshapen", choice(kind="root", channel=1, text="x")),
        ("misshapen", choice(kind="answer", post="1", text="x")),
        ("misshapen", choice(kind="shout", text="x")),
        ("misshapen", choice(kind="skip")),
        ("misshapen", '{"thought": "t", "choice": "skip"}'),
        ("blank", choice(kind="answer", post=1, text=" ")),
    ],
)
def test_unusable_choice_has_its_reason(reason: str, answer: str) -> None:
    assert reason_of(POST, answer) == reason


def test_root_is_refused_where_only_answers_are_on_offer() -> None:
    assert isinstance(POST, PostContext)
    only_answers = replace(POST, may_start_root=False)
    root = choice(kind="root", channel=1, partner=None, text="x")

    assert reason_of(only_answers, root) == "unknown_id"
    assert isinstance(read(POST, root), NewRoot)


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("blank", '{"memory": " "}'),
        ("unstorable", '{"memory": "\\ud800"}'),
        ("misshapen", '{"memory": ["x"]}'),
    ],
)
def test_unusable_memory_has_its_reason(reason: str, answer: str) -> None:
    assert reason_of(REMEMBER, answer) == reason


numbers = st.integers(-1, 8)
words = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.sampled_from(
        ["KelpBot: x", "FerryBot: x\nKelpBot: y", "x", "</post>", "{", "\x00", "<html>"]
    ),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, st.floats(), words)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)
choices = st.one_of(
    st.fixed_dictionaries({"kind": st.just("answer"), "post": numbers, "text": words}),
    st.fixed_dictionaries(
        {
            "kind": st.just("root"),
            "channel": numbers,
            "partner": st.none() | numbers,
            "text": words,
        }
    ),
    st.fixed_dictionaries({"kind": st.just("skip"), "reason": words}),
)
answers = st.one_of(
    st.fixed_dictionaries({"posts": st.lists(numbers, max_size=5)}),
    st.fixed_dictionaries({"thought": words, "move": st.sampled_from(Move), "text": words}),
    st.fixed_dictionaries({"thought": words, "choice": choices}),
    st.fixed_dictionaries({"memory": words}),
    st.dictionaries(st.sampled_from(["posts", "move", "text", "thought", "choice"]), values),
    values,
).map(json.dumps)
cut = st.builds(lambda text, n: text[:n], answers, st.integers(0, 60))
raws = st.builds(
    RawAnswer,
    texts=st.lists(st.one_of(answers, cut, words), max_size=2).map(tuple),
    finish_reason=st.sampled_from(
        ["end_turn", "end_turn", "max_tokens", "refusal", "", "tool_use"]
    ),
)


@settings(max_examples=400, deadline=None)
@given(context=contexts, raw=raws)
@example(
    context=REPLY,
    raw=RawAnswer(texts=('{"thought":"","move":"continue","text":"x"}',), finish_reason=""),
)
def test_only_decisions_and_reasons_come_of_any_answer(context: Context, raw: RawAnswer) -> None:
    came = outcome(context, raw)

    if isinstance(came, UnusableAnswer):
        assert came.reason in set(Unusable)
    else:
        assert_fits(context, came)


@settings(max_examples=200, deadline=None)
@given(context=contexts, data=st.data())
def test_answers_in_the_right_form_are_read_or_refused(
    context: Context, data: st.DataObject
) -> None:
    form = {
        "ScanContext": st.fixed_dictionaries({"posts": st.lists(numbers)}),
        "PruneContext": st.fixed_dictionaries({"posts": st.lists(numbers)}),
        "ReplyContext": st.fixed_dictionaries(
            {"thought": words, "move": st.sampled_from(Move), "text": words}
        ),
        "PostContext": st.fixed_dictionaries({"thought": words, "choice": choices}),
        "RememberContext": st.fixed_dictionaries({"memory": words}),
    }[type(context).__name__]
    texts = (json.dumps(data.draw(form)),)
    came = outcome(context, RawAnswer(texts=texts, finish_reason="end_turn"))

    if isinstance(came, UnusableAnswer):
        assert came.reason not in {"empty", "prose", "unparsable"}
    else:
        assert_fits(context, came)


def assert_fits(context: Context, decision: Decision) -> None:
    match decision:
        case Chosen():
            assert isinstance(context, ScanContext | PruneContext)
            assert set(decision.seqs) <= {post.seq for post in context.posts}
        case Written():
            assert isinstance(context, ReplyContext)
            assert decision.move in context.moves
        case AnswerPost():
            assert isinstance(context, PostContext)
            assert decision.seq in {one.entry.seq for one in context.bank}
        case NewRoot():
            assert isinstance(context, PostContext)
            assert context.may_start_root
        case _:
            pass
    text = getattr(decision, "text", "x")
    assert text.strip()
    assert is_storable(text)


def test_persona_may_answer_a_post_by_a_person_in_its_own_voice() -> None:
    assert isinstance(POST, PostContext)
    context = post_context(FERRY, bank=POST.bank)

    assert reason_of(context, choice(kind="answer", post=2, text="Harbour office: yes")) == (
        "other_voice"
    )
    assert POSTS[1].author == "Harbour office"


def test_reply_to_people_alone_knows_no_partner() -> None:
    context = reply_context(FERRY, None, POSTS[1:], moves=(Move.CONTINUE,))

    assert read(context, reply("Pier 4, at dawn.")) == Written(
        move=Move.CONTINUE, text="Pier 4, at dawn."
    )
