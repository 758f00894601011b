"""One typed field for each setting of a simulation, in plain words; blank means the default.

Bounds and defaults are the engine's. A simulation stores only what differs from the defaults, so
that a better default reaches it.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms

from engine.core.prices import in_usd
from engine.core.settings import SETTINGS, Setting, default_of

_SETTINGS: Final = {setting.name: setting for setting in SETTINGS}


def _field(name: str, label: str, text: str, default: str = "") -> forms.Field:
    """Return the optional field of a setting; `default` says what holds where no number does."""
    setting = _SETTINGS[name]
    default = default or _default_in_words(setting)
    bounds = f"{setting.minimum:,.10g} to {setting.maximum:,.10g}"
    step = "1" if setting.kind is int else "any"
    attributes = {"placeholder": default, "class": "sim-number", "step": step}
    kind: Any = forms.IntegerField if setting.kind is int else forms.FloatField
    field: forms.Field = kind(
        label=label,
        required=False,
        min_value=setting.kind(setting.minimum),
        max_value=setting.kind(setting.maximum),
        help_text=f"{text} From {bounds}; blank: {default}.",
        widget=forms.NumberInput(attrs=attributes),
    )
    return field


def _default_in_words(setting: Setting) -> str:
    default = default_of(setting, llm="anthropic")
    rehearsed = default_of(setting, llm="offline")
    return f"{default:g}" if default == rehearsed else f"{default:g}, in a rehearsal {rehearsed:g}"


class SettingsForm(forms.Form):
    """The settings of a simulation; `GROUPS` is their order on the page."""

    active_thread_threshold = _field(
        "active_thread_threshold",
        "Open threads per agent",
        "An agent talks in at most so many threads at the same time.",
    )
    thread_messages = _field(
        "thread_messages",
        "Messages per thread",
        "After so many messages of the two agents their talk is closed.",
    )
    pair_rest_seconds = _field(
        "pair_rest_seconds",
        "Seconds of rest for a pair",
        "Two agents that have ended a thread wait so long before they open another.",
    )
    thread_idle_seconds = _field(
        "thread_idle_seconds",
        "Seconds until a silent thread is closed",
        "A thread in which an answer is owed for so long is closed.",
    )
    daily_posts = _field(
        "daily_posts",
        "New posts per agent and day",
        "New posts of its own in public channels; answers do not count.",
    )
    unreviewed_proposals = _field(
        "unreviewed_proposals",
        "Proposals that wait for you",
        "An agent with so many proposals that nobody has reviewed starts no new topic.",
    )
    post_interval_seconds = _field(
        "post_interval_seconds",
        "Seconds between chances to post",
        "So long after one chance to post an agent gets the next.",
    )
    post_skip_probability = _field(
        "post_skip_probability",
        "Chance to let a post pass",
        "0: never, 1: always. A chance that passes asks no model and costs nothing.",
    )
    scan_delay_seconds = _field(
        "scan_delay_seconds",
        "Seconds before a post is read",
        "New posts are read together: a longer delay saves model calls.",
    )
    concurrent_turns = _field(
        "concurrent_turns",
        "Agents at work at the same time",
        "More makes a run faster; no agent takes two turns at once.",
        "as many as open threads per agent",
    )
    max_llm_calls_in_flight = _field(
        "max_llm_calls_in_flight",
        "Model calls at the same time",
        "Over all agents; lower it if the provider refuses for too many requests.",
        "four for each agent at work",
    )
    turn_delay_seconds = _field(
        "turn_delay_seconds",
        "Seconds of rest after a turn",
        "An agent rests so long after its turn has ended.",
    )
    max_turn_seconds = _field(
        "max_turn_seconds",
        "Longest turn in seconds",
        "A turn that takes longer is ended; what it has stored stays.",
    )
    calls_per_window = _field(
        "calls_per_window",
        "Model calls per agent in ten minutes",
        "For each of its open threads, counted over the last ten minutes.",
        "no limit",
    )
    stop_grace_seconds = _field(
        "stop_grace_seconds",
        "Seconds to finish when stopped",
        "Turns that are going on when a run is stopped may take so long to finish.",
    )


SETTING_NAMES: Final = tuple(_SETTINGS)

GROUPS: Final = (
    (
        "Talks",
        ("active_thread_threshold", "thread_messages", "pair_rest_seconds", "thread_idle_seconds"),
    ),
    (
        "Posts and proposals",
        (
            "daily_posts",
            "unreviewed_proposals",
            "post_interval_seconds",
            "post_skip_probability",
            "scan_delay_seconds",
        ),
    ),
    (
        "Pace and limits",
        (
            "concurrent_turns",
            "max_llm_calls_in_flight",
            "turn_delay_seconds",
            "max_turn_seconds",
            "calls_per_window",
            "stop_grace_seconds",
        ),
    ),
)


_OF_A_RUN: Final = {
    "policy": "Agents in no cohort",
    "llm": "Model",
    "small_model": "Model for sorting and remembering",
    "large_model": "Model for replies and posts",
    "chat": "Chat",
    "clock": "Clock",
    "seed": "Seed of chance",
    "time_zone": "Time zone",
    "latency_seconds": "Simulated seconds per answer",
    "house_rules": "House rules",
    "house_rules_version": "Version of the house rules",
    "until_idle": "Ends when nothing is left to do",
    "max_turns": "At most so many turns",
    "max_minutes": "At most so many minutes",
    "max_calls": "At most so many model calls",
    "max_nano_usd": "At most so much money",
}


def setting_in_words(name: str, value: object) -> tuple[str, str]:
    """Return the label and the value of one entry of a run's configuration."""
    field = SettingsForm.base_fields.get(name)
    label = str(field.label) if field else _OF_A_RUN.get(name, name)
    if value is None:
        return label, "no limit"
    if isinstance(value, bool):
        return label, "yes" if value else "no"
    if name == "max_nano_usd" and isinstance(value, int):
        return label, in_usd(value)
    return label, f"{value:g}" if isinstance(value, float) else str(value)
