"""Prices: dated, by length of prompt, rounded up; a model without one costs None."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.prices import Price, PriceTable, in_usd, nano_usd
from engine.core.usage import Usage

NANO = 10**9
SPRING, AUTUMN = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 10, 7, tzinfo=UTC)


def price(since: str = "2026-03-01", *, above: int = 0, **usd: str) -> Price:
    """Return a price of $3 in, $15 out, $3.75 and $0.30 for the cache, but for what is given."""
    usual = {"input": "3", "output": "15", "cache_write": "3.75", "cache_read": "0.30"}
    amounts = {kind: nano_usd(Decimal(text)) for kind, text in (usual | usd).items()}
    return Price(model="m", since=date.fromisoformat(since), prompt_above=above, **amounts)


def test_cost_adds_every_kind_of_token_at_its_own_price() -> None:
    usage = Usage(
        input_tokens=1_000, output_tokens=100, cache_write_tokens=10_000, cache_read_tokens=100_000
    )
    cost = PriceTable([price()]).cost("m", usage, SPRING)
    assert cost == 3_000_000 + 1_500_000 + 37_500_000 + 30_000_000


def test_broken_nano_dollar_is_rounded_up() -> None:
    table = PriceTable([price(input="0.0001")])
    assert table.cost("m", Usage(input_tokens=1), SPRING) == 1
    assert table.cost("m", Usage(input_tokens=10), SPRING) == 1
    assert table.cost("m", Usage(input_tokens=11), SPRING) == 2


def test_model_without_a_price_costs_none_and_not_nothing() -> None:
    table = PriceTable([price()])
    assert table.cost("other", Usage(input_tokens=1), SPRING) is None
    assert table.upper_cost("other", SPRING, input_tokens=1, output_tokens=1) is None
    assert (table.knows("m", SPRING), table.knows("other", SPRING)) == (True, False)


def test_price_holds_from_its_day_on() -> None:
    table = PriceTable([price("2026-03-01"), price("2026-10-07", cache_read="0.10")])
    usage = Usage(cache_read_tokens=1_000_000)
    before = datetime(2026, 10, 6, 23, 59, tzinfo=UTC)
    assert table.cost("m", usage, before) == NANO * 30 // 100
    assert table.cost("m", usage, AUTUMN) == NANO * 10 // 100
    assert table.cost("m", usage, datetime(2026, 2, 28, tzinfo=UTC)) is None


def test_later_row_of_a_day_goes_before_an_earlier_one() -> None:
    table = PriceTable([price(), price(input="4")])
    assert table.cost("m", Usage(input_tokens=1_000_000), SPRING) == 4 * NANO


@pytest.mark.parametrize(("cached", "cost"), [(99_999, 10_000), (100_000, 50_000)])
def test_long_prompt_has_its_own_price_cached_tokens_counted(cached: int, cost: int) -> None:
    cheap = price(input="0.01", output="0.01", cache_write="0", cache_read="0")
    dear = price(above=100_000, input="0.05", output="0.05", cache_write="0", cache_read="0")
    usage = Usage(input_tokens=1, output_tokens=999, cache_read_tokens=cached)
    assert PriceTable([dear, cheap]).cost("m", usage, SPRING) == cost


def test_upper_cost_takes_the_dearest_kind_of_input() -> None:
    table = PriceTable([price()])
    assert table.upper_cost("m", SPRING, input_tokens=1_000_000, output_tokens=1_000) == (
        3_750_000_000 + 15_000_000
    )


tokens = st.integers(0, 300_000)


@given(
    usage=st.builds(
        Usage,
        **dict.fromkeys(
            ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), tokens
        ),
    ),
    more=st.integers(0, 1_000),
)
def test_upper_cost_is_never_under_the_cost(usage: Usage, more: int) -> None:
    """Whatever is cached, and on whichever side of the long prompts' price it ends up."""
    cheaper_when_long = price(above=100_000, input="1", cache_read="9", output="2")
    for table in (PriceTable([price(), cheaper_when_long]), PriceTable([price()])):
        cost = table.cost("m", usage, SPRING)
        upper = table.upper_cost(
            "m",
            SPRING,
            input_tokens=usage.prompt_tokens + more,
            output_tokens=usage.output_tokens,
        )
        assert cost is not None
        assert upper is not None
        assert cost <= upper


def test_amounts_of_money_are_whole_nano_dollars() -> None:
    assert nano_usd(Decimal("0.0000000019")) == 1
    assert nano_usd(None) is None
    assert in_usd(1_234_567_800_000) == "$1,234.5678"
