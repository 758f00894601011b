"""How slugs, bot names, cohorts and channels are named; one source for models, forms and the importer."""

from __future__ import annotations

import re
from typing import Final

# `\Z` and not `$`: Python's `$` also matches before a line break at the end. PostgreSQL and
# Python both read these patterns, which are database constraints too.
SLUG_PATTERN: Final = r"^[a-z0-9][a-z0-9-]{0,47}\Z"
BOT_NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_]{0,47}\Z"
CHANNEL_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,79}\Z"
MODEL_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,99}\Z"
MODEL_LIKE: Final = "1 to 100 letters, digits and . _ : @ / -, beginning with a letter or digit"
SLUG_LIKE: Final = "1 to 48 lower-case letters, digits and hyphens, not beginning with a hyphen"
BOT_NAME_LIKE: Final = "1 to 48 letters, digits and underscores, beginning with a letter"
CHANNEL_LIKE: Final = (
    "1 to 80 lower-case letters, digits, hyphens and underscores, beginning with a letter or digit"
)

RESERVED_SLUGS: Final = ("add", "all", "none")
"""Words of the admin's addresses and of forms: no agent id and no cohort."""
RESERVED_BOT_NAMES: Final = ("channel", "everyone", "here")
"""Chat systems ring everybody at these, in any case of letters."""


def is_slug(text: str) -> bool:
    """Tell whether a text has the form of an agent id or of a cohort's name."""
    return re.search(SLUG_PATTERN, text) is not None


def is_bot_name(text: str) -> bool:
    """Tell whether a text has the form of a bot name, which is also its mention handle."""
    return re.search(BOT_NAME_PATTERN, text) is not None


def is_channel_name(text: str) -> bool:
    """Tell whether a text has the form of a channel's name."""
    return re.search(CHANNEL_PATTERN, text) is not None
