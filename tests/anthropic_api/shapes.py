"""Reads untyped JSON strictly: what is missing, extra or of another type is refused by its path.

Unknown fields are refused at every level, as the API does with its "extra inputs":
https://qiita.com/Synthorai/items/01a0067e88747257a4e6
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from tests.anthropic_api.refusal import Json, Refusal, invalid


def parsed(raw: bytes) -> Json:
    """Return the body as an object.

    Bytes that are not UTF-8 are refused, and so is half a surrogate pair in a string, which Python
    would read: https://github.com/anthropics/claude-code/issues/3277
    """
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as exc:
        raise Refusal(400, f"The body is not valid JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise Refusal(400, "The body is not a JSON object.")
    return body


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def fields(
    value: object, where: str, *, required: Collection[str], optional: Collection[str] = ()
) -> Json:
    """Return `value` as an object that has what is required and nothing unknown."""
    if not isinstance(value, dict):
        raise invalid(where or "body", "an object is needed")
    prefix = f"{where}." if where else ""
    for name in required:
        if name not in value:
            raise invalid(f"{prefix}{name}", "Field required")
    for name in value:
        if name not in required and name not in optional:
            raise invalid(f"{prefix}{name}", "Extra inputs are not permitted")
    return value


def items(value: object, where: str) -> list[Any]:
    """Return `value` as a list."""
    if not isinstance(value, list):
        raise invalid(where, "a list is needed")
    return value


def text(value: object, where: str) -> str:
    """Return `value` as a string."""
    if not isinstance(value, str):
        raise invalid(where, "a string is needed")
    return value


def text_with_content(value: object, where: str) -> str:
    """Return `value` as a string that is more than white space.

    Empty texts: https://github.com/anthropics/anthropic-sdk-python/issues/461
    Blank ones: https://github.com/anthropics/claude-code/issues/23440
    """
    string = text(value, where)
    if not string.strip():
        raise invalid(where, "text must be more than white space")
    return string


def flag(value: object, where: str) -> bool:
    """Return `value` as true or false."""
    if not isinstance(value, bool):
        raise invalid(where, "true or false is needed")
    return value


def whole(value: object, where: str, *, least: int = 0, most: float = math.inf) -> int:
    """Return `value` as an integer from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(where, "an integer is needed")
    if not least <= value <= most:
        raise invalid(where, f"{value} is not from {least} to {most}")
    return value


def one_of(value: object, where: str, choices: Collection[str]) -> str:
    """Return `value` as one of the words."""
    if not isinstance(value, str) or value not in choices:
        raise invalid(where, f"one of {', '.join(sorted(choices))} is needed")
    return value
