"""What a run is asked for, on top of its simulation's settings: checked, and made a configuration.

Every door speaks these names: they are the settings of a simulation, and those fields of `RunConfig`
that a person chooses.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from cohorts.names import MODEL_LIKE, MODEL_PATTERN
from engine.build import CHATS, CLOCKS, LLMS
from engine.core.settings import SETTINGS, RefusedSetting, checked, configuration
from engine.models import Simulation
from engine.simulations import house_rules_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.core.config import RunConfig

#: The largest number that every database can store.
MOST: Final = 2**63 - 1
_SETTING_NAMES: Final = frozenset(setting.name for setting in SETTINGS)
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "policy": tuple(str(one) for one in Simulation.Policy.values),
    "llm": LLMS,
    "chat": CHATS,
    "clock": CLOCKS,
}
_MODELS: Final = ("small_model", "large_model")
_NUMBERS: Final[dict[str, tuple[type[int | float], float, float]]] = {
    "seed": (int, -MOST, MOST),
    "latency_seconds": (float, 0, 3600),
    "max_turns": (int, 1, MOST),
    "max_minutes": (float, 0.001, 10**6),
    "max_calls": (int, 1, MOST),
    "max_nano_usd": (int, 1, MOST),
}


def configured(simulation: Simulation | None, asked: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of the next run of a simulation, None being one that is yet to come.

    What is None in `asked`, or not named, is the simulation's, or the site's. Raises
    `RefusedSetting` for a value that cannot be used.
    """
    own = {name: value for name, value in asked.items() if value is not None}
    values: dict[str, object] = {} if simulation is None else dict(simulation.settings)
    values |= {name: own.pop(name) for name in _SETTING_NAMES & own.keys()}
    rules = None if simulation is None else house_rules_of(simulation)
    usual: dict[str, Any] = {
        "policy": str(Simulation.Policy.OPEN if simulation is None else simulation.policy),
        "chat": CHATS[0],
        "clock": CLOCKS[0],
        "seed": secrets.randbelow(2**31),
        "time_zone": settings.TIME_ZONE,
        "house_rules": "" if rules is None else rules.text,
        "house_rules_version": 0 if rules is None else rules.number,
        "record_calls": settings.SIM_RECORD_CALLS,
    }
    return configuration(values, **usual | _usual_models(own.get("llm", settings.SIM_LLM)) | own)


def _usual_models(llm: str) -> dict[str, str]:
    """Return the LLM, and the models that a run of it asks which names none."""
    if llm == LLMS[0]:
        return {"llm": llm}
    return {
        "llm": llm,
        "small_model": settings.SIM_ANTHROPIC_SMALL_MODEL,
        "large_model": settings.SIM_ANTHROPIC_LARGE_MODEL,
    }


def check_asked(asked: Mapping[str, object]) -> None:
    """Refuse names that a run cannot be asked for, and values that cannot be used, in one sentence."""
    for name, value in asked.items():
        _check(name, value)
    for name in _MODELS:
        if asked.get(name) and (asked.get("llm") or settings.SIM_LLM) == LLMS[0]:
            raise RefusedSetting(f"The offline LLM is no model of a choice: leave {name} blank.")


def _check(name: str, value: object) -> None:
    if name in _SETTING_NAMES:
        checked(name, value)
    elif name in _WORDS:
        if value not in _WORDS[name]:
            raise RefusedSetting(f"{name} is {value!r}: it must be {' or '.join(_WORDS[name])}.")
    elif name in _MODELS:
        if not (isinstance(value, str) and re.search(MODEL_PATTERN, value)):
            raise RefusedSetting(f"{name} is {value!r}: it must be {MODEL_LIKE}.")
    elif name in _NUMBERS:
        kind, lowest, highest = _NUMBERS[name]
        kinds = (int, float) if kind is float else (int,)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if not (is_number and lowest <= value <= highest):  # type: ignore[operator]
            raise RefusedSetting(f"{name} is {value!r}: give a number from {lowest} to {highest}.")
    elif name != "until_idle":
        raise RefusedSetting(f"A run cannot be asked for {name}.")
    elif not isinstance(value, bool):
        raise RefusedSetting(f"until_idle is {value!r}: it is true or false.")
