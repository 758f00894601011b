"""The prompt cache: what is read, written and neither, to the token and to the second."""

from __future__ import annotations

import threading

import pytest

from tests.anthropic_api.asking import ask, assistant, block, block_of, hello, noting, user
from tests.anthropic_api.models import OPUS, SONNET
from tests.anthropic_api.prompt import parts_of
from tests.anthropic_api.refusal import Json
from tests.anthropic_api.script import COUNT
from tests.anthropic_api.server import KEY, AnthropicApi, Clock
from tests.anthropic_api.steps import Waits, answers, dropped, overloaded, unsent

OTHER_KEY = "another-key"


def told(*system: Json, **changes: object) -> Json:
    """A request with these blocks of system, and a message of ten tokens behind them."""
    return hello(system=list(system), **changes)


def test_tokens_are_three_bytes_of_compact_json_rounded_up() -> None:
    # {"type":"text","text":""} has 25 bytes.
    texts = {"ab": 9, "abc": 10, "ä": 9, "äa": 10, '"': 9, "\n\n": 10}
    counted = {text: parts_of(hello(messages=[user(text)]))[0].tokens for text in texts}
    assert counted == texts
    assert parts_of(hello(messages=[user("ab")])) == parts_of(hello(messages=[user([block("ab")])]))


def test_count_of_all_parts(api: AnthropicApi) -> None:
    tool = {"name": "a", "input_schema": {"type": "object"}}  # 45 bytes: 15 tokens
    form = {
        "type": "json_schema",
        "schema": {"type": "object", "properties": {}, "additionalProperties": False},
    }  # 94 bytes: 32 tokens
    body = hello(
        tools=[tool, tool | {"name": "b", "cache_control": {"type": "ephemeral"}}],
        system="abcd",  # 29 bytes: 10 tokens
        output_config={"format": form},
    )
    counted = ask(api, {name: body[name] for name in body if name != "max_tokens"}, path=COUNT)
    assert counted.json == {"input_tokens": 15 + 15 + 32 + 10 + 10}
    assert ask(api, body).usage == (82, 0, 0)


def test_prefix_below_the_least_length_is_not_cached(api: AnthropicApi) -> None:
    short = told(block_of(1023, ttl="5m"))
    assert [ask(api, short).usage for _ in range(2)] == [(1033, 0, 0), (1033, 0, 0)]
    long = told(block_of(1024, ttl="5m"))
    assert [ask(api, long).usage for _ in range(2)] == [(10, 1024, 0), (10, 0, 1024)]


def test_prefix_without_a_mark_is_not_cached(api: AnthropicApi) -> None:
    assert [ask(api, told(block_of(2000))).usage for _ in range(2)] == [(2010, 0, 0)] * 2


def test_prefix_lives_for_five_minutes_from_its_last_use(api: AnthropicApi) -> None:
    body = told(block_of(1024, ttl="5m"))
    assert ask(api, body).usage == (10, 1024, 0)
    api.clock.move(299)
    assert ask(api, body).usage == (10, 0, 1024)
    api.clock.move(299)
    assert ask(api, body).usage == (10, 0, 1024)
    api.clock.move(300)
    assert ask(api, body).usage == (10, 1024, 0)


def test_prefix_lives_for_an_hour_where_that_is_asked_for(api: AnthropicApi) -> None:
    body = told(block_of(1024, ttl="1h"))
    assert ask(api, body).usage == (10, 1024, 0)
    api.clock.move(3599)
    assert ask(api, body).usage == (10, 0, 1024)
    api.clock.move(3600)
    reply = ask(api, body)
    assert reply.json["usage"]["cache_creation"] == {
        "ephemeral_5m_input_tokens": 0,
        "ephemeral_1h_input_tokens": 1024,
    }


def test_change_before_the_mark_loses_the_prefix(api: AnthropicApi) -> None:
    ask(api, told(block_of(1024, ttl="5m")))
    assert ask(api, told(block_of(1024, "b", ttl="5m"))).usage == (10, 1024, 0)
    assert ask(api, told(block_of(1024, ttl="5m"))).usage == (10, 0, 1024)


def test_change_behind_the_mark_keeps_the_prefix(api: AnthropicApi) -> None:
    ask(api, told(block_of(1024, ttl="5m")))
    later = told(block_of(1024, ttl="5m"), block("new"), messages=[user("Another text")])
    assert ask(api, later).usage == (10 + 13, 0, 1024)


def test_order_of_keys_is_part_of_the_prefix(api: AnthropicApi) -> None:
    here = block_of(1024, ttl="5m")
    ask(api, told(here))
    turned = dict(reversed(here.items()))
    assert ask(api, told(turned)).usage == (10, 1024, 0)


def test_prefix_rests_on_tools_then_system_then_messages(api: AnthropicApi) -> None:
    tool = {"name": "a", "input_schema": {"type": "object"}, "description": "b" * 3100}
    mark = {"cache_control": {"type": "ephemeral"}}
    all_marked = hello(
        tools=[tool | mark],
        system=[block_of(1000, ttl="5m")],
        messages=[user([block_of(1000, ttl="5m")])],
    )
    n_tool = parts_of(all_marked)[0].tokens
    assert ask(api, all_marked).usage == (0, n_tool + 2000, 0)

    assert ask(api, all_marked).usage == (0, 0, n_tool + 2000)
    other_message = all_marked | {"messages": [user([block_of(1000, "b", ttl="5m")])]}
    assert ask(api, other_message).usage == (0, 1000, n_tool + 1000)
    other_system = all_marked | {"system": [block_of(1000, "b", ttl="5m")]}
    assert ask(api, other_system).usage == (0, 2000, n_tool)
    other_tool = all_marked | {"tools": [tool | mark | {"description": "c" * 3100}]}
    assert ask(api, other_tool).usage == (0, n_tool + 2000, 0)


def test_choice_of_a_tool_loses_messages_only(api: AnthropicApi) -> None:
    tool = {"name": "a", "input_schema": {"type": "object"}}
    body = hello(
        tools=[tool],
        system=[block_of(1024, ttl="5m")],
        messages=[user([block_of(1000, ttl="5m")])],
    )
    assert ask(api, body).usage == (0, 15 + 2024, 0)
    assert ask(api, body | {"tool_choice": {"type": "none"}}).usage == (0, 1000, 15 + 1024)


def test_output_format_loses_everything(api: AnthropicApi) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    with_form = told(
        block_of(1024, ttl="5m"),
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    ask(api, told(block_of(1024, ttl="5m")))
    assert ask(api, with_form).usage == (10, 32 + 1024, 0)
    assert ask(api, with_form).usage == (10, 0, 32 + 1024)


def test_models_and_keys_share_nothing() -> None:
    with AnthropicApi(keys={KEY: None, OTHER_KEY: None}, clock=Clock(runs=False)) as api:
        body = told(block_of(1024, ttl="5m"), model=SONNET.id)
        assert ask(api, body).usage == (10, 1024, 0)
        assert ask(api, body | {"model": OPUS.id}).usage == (10, 1024, 0)
        other = {"x-api-key": OTHER_KEY, "anthropic-version": "2026-10-21"}
        assert ask(api, body, headers=other).usage == (10, 1024, 0)
        assert ask(api, body).usage == (10, 0, 1024)


def test_growing_talk_reads_what_it_wrote_before(api: AnthropicApi) -> None:
    automatic = {"cache_control": {"type": "ephemeral"}}
    talk = [user([block_of(1024)])]
    assert ask(api, hello(messages=talk) | automatic).usage == (0, 1024, 0)
    talk += [assistant([block_of(100)]), user([block_of(100)])]
    assert ask(api, hello(messages=talk) | automatic).usage == (0, 200, 1024)
    talk += [assistant([block_of(100)]), user([block_of(100)])]
    assert ask(api, hello(messages=talk) | automatic).usage == (0, 200, 1224)


@pytest.mark.parametrize(("n_blocks", "n_read"), [(19, 1024), (20, 0)])
def test_mark_looks_twenty_places_back(api: AnthropicApi, n_blocks: int, n_read: int) -> None:
    ask(api, told(block_of(1024, ttl="5m")))
    more = [block_of(10) for _ in range(n_blocks - 1)]
    moved = told(block_of(1024), *more, block_of(10, ttl="5m"))
    assert ask(api, moved).usage[2] == n_read


def test_uses_of_tools_in_a_row_are_one_place(api: AnthropicApi) -> None:
    tools = [{"name": "a", "input_schema": {"type": "object"}}]
    first = hello(tools=tools, messages=[user([block_of(1024, ttl="5m")])])
    assert ask(api, first).usage[2] == 0
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "a", "input": {}} for n in range(30)]
    results: list[Json] = [{"type": "tool_result", "tool_use_id": f"t{n}"} for n in range(30)]
    results[-1]["cache_control"] = {"type": "ephemeral"}
    talk = [user([block_of(1024)]), assistant(uses), user(results)]
    assert ask(api, hello(tools=tools, messages=talk)).usage[2] == 15 + 1024


def test_longest_matching_mark_counts(api: AnthropicApi) -> None:
    two = told(block_of(1024, ttl="5m"), block_of(500, ttl="5m"))
    assert ask(api, two).usage == (10, 1524, 0)
    assert ask(api, told(block_of(1024, ttl="5m"))).usage == (10, 0, 1024)
    assert ask(api, two).usage == (10, 0, 1524)


def test_prefix_of_a_request_that_is_still_open_is_not_read(api: AnthropicApi) -> None:
    body = told(block_of(1024, ttl="5m"))
    begun, gate = threading.Event(), threading.Event()
    late_one = Waits(seconds=30, then=answers(), until=gate)
    api.script.add(late_one, when=noting(begun))
    late = threading.Thread(target=ask, args=(api, body))
    late.start()
    try:
        assert begun.wait(30)
        assert ask(api, body).usage == (10, 1024, 0)
    finally:
        gate.set()
        late.join()
    # The open one began before there was anything to read, so it wrote as well.
    assert api.ledger.bill()[KEY, "claude-haiku-5-5"].write_5m_tokens == 2 * 1024
    assert ask(api, body).usage == (10, 0, 1024)


def test_failed_request_writes_nothing_and_a_lost_answer_does(api: AnthropicApi) -> None:
    body = told(block_of(1024, ttl="5m"))
    api.script.add(overloaded(), dropped())
    assert ask(api, body).status == 529
    with pytest.raises(ConnectionError):
        ask(api, body)
    api.script.add(answers())
    assert ask(api, body).usage == (10, 1024, 0)
    api.clock.move(300)
    api.script.add(unsent())
    with pytest.raises(ConnectionError):
        ask(api, body)
    assert ask(api, body).usage == (10, 0, 1024)
