"""The settings of a simulation: names, bounds, defaults, and how a run's configuration is made.

A simulation stores only what differs from the defaults; a run may change any of it for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.core.config import RunConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

#: With a model that answers at once, waiting would only make a run longer.
_OFFLINE = {"scan_delay_seconds": 0.0, "post_interval_seconds": 0.0, "pair_rest_seconds": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: `default` None means that it follows from another (see `configuration`)."""

    name: str
    kind: type[int | float]
    default: float | None
    minimum: float
    maximum: float
    meaning: str
    optional: bool = False


SETTINGS = (
    Setting(
        name="active_thread_threshold",
        kind=int,
        default=3,
        minimum=1,
        maximum=100,
        meaning="open threads an agent may be in at once (its seats)",
    ),
    Setting(
        name="concurrent_turns",
        kind=int,
        default=None,
        minimum=1,
        maximum=500,
        meaning="turns that run at the same time (slots); as many as seats if not set",
        optional=True,
    ),
    Setting(
        name="max_llm_calls_in_flight",
        kind=int,
        default=None,
        minimum=1,
        maximum=2000,
        meaning="calls to the model at the same time; four times the slots if not set",
        optional=True,
    ),
    Setting(
        name="turn_delay_seconds",
        kind=float,
        default=0.0,
        minimum=0,
        maximum=86400,
        meaning="rest of an agent after a turn of its own has ended",
    ),
    Setting(
        name="max_turn_seconds",
        kind=float,
        default=600.0,
        minimum=1,
        maximum=86400,
        meaning="deadline of a turn",
    ),
    Setting(
        name="scan_delay_seconds",
        kind=float,
        default=30.0,
        minimum=0,
        maximum=86400,
        meaning="a new post waits this long before it alone wakes an agent (offline: 0)",
    ),
    Setting(
        name="post_interval_seconds",
        kind=float,
        default=900.0,
        minimum=0,
        maximum=604800,
        meaning="from one chance to post to the next (offline: 0)",
    ),
    Setting(
        name="post_skip_probability",
        kind=float,
        default=0.0,
        minimum=0,
        maximum=1,
        meaning="how often a chance to post passes without asking the model",
    ),
    Setting(
        name="daily_posts",
        kind=int,
        default=3,
        minimum=0,
        maximum=1000,
        meaning="new posts of an agent in public channels a day",
    ),
    Setting(
        name="unreviewed_proposals",
        kind=int,
        default=2,
        minimum=1,
        maximum=1000,
        meaning="at this number an agent starts nothing new until a person has reviewed",
    ),
    Setting(
        name="thread_messages",
        kind=int,
        default=12,
        minimum=2,
        maximum=100,
        meaning="agents' messages after which a thread is closed",
    ),
    Setting(
        name="pair_rest_seconds",
        kind=float,
        default=3600.0,
        minimum=0,
        maximum=2592000,
        meaning="before two agents may open another thread with each other (offline: 0)",
    ),
    Setting(
        name="thread_idle_seconds",
        kind=float,
        default=86400.0,
        minimum=1,
        maximum=2592000,
        meaning="a thread in which nobody has spoken for so long is closed",
    ),
    Setting(
        name="calls_per_window",
        kind=int,
        default=None,
        minimum=1,
        maximum=10000,
        meaning="calls of an agent in ten minutes, for each of its open threads; no limit if not set",
        optional=True,
    ),
    Setting(
        name="stop_grace_seconds",
        kind=float,
        default=60.0,
        minimum=0,
        maximum=3600,
        meaning="before turns in flight are cancelled when a run is stopped",
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


class RefusedSetting(ValueError):
    """A setting that cannot be used; the message is one sentence for the person who wrote it."""


def default_of(setting: Setting, *, llm: str) -> float | None:
    """Return what holds when a setting is not set; the offline LLM has some of its own."""
    if llm == "offline" and setting.name in _OFFLINE:
        return _OFFLINE[setting.name]
    return setting.default


def checked(name: str, value: object) -> float | None:
    """Return a setting's value as its kind, or raise `RefusedSetting`."""
    setting = _BY_NAME.get(name)
    if setting is None:
        known = ", ".join(_BY_NAME)
        raise RefusedSetting(f"There is no setting {name}; there are {known}.")
    if value is None and setting.optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedSetting(f"{name} is {value!r}: give a number.")
    if not setting.minimum <= value <= setting.maximum:
        bounds = f"from {setting.minimum:g} to {setting.maximum:g}"
        raise RefusedSetting(f"{name} is {value:g}: give a number {bounds}.")
    if setting.kind is int and value != int(value):
        raise RefusedSetting(f"{name} is {value}: give a whole number.")
    return setting.kind(value)


def configuration(settings: Mapping[str, object], **asked: Any) -> RunConfig:
    """Make a run's configuration from the settings in force and what was asked of the run.

    `asked` are the fields of `RunConfig` that are no settings (policy, llm, seed, caps …).
    Raises `RefusedSetting` for a value that cannot be used.
    """
    llm = str(asked.get("llm", "offline"))
    given = {name: checked(name, value) for name, value in settings.items()}
    values: dict[str, Any] = {
        setting.name: given.get(setting.name, default_of(setting, llm=llm)) for setting in SETTINGS
    }
    if values["concurrent_turns"] is None:
        values["concurrent_turns"] = values["active_thread_threshold"]
    if values["max_llm_calls_in_flight"] is None:
        values["max_llm_calls_in_flight"] = 4 * values["concurrent_turns"]
    return RunConfig(**values, **asked)
