"""Shows characters that nobody sees: marks that turn the direction of writing, and invisible ones.

They may stand in any name or text that a person or a model wrote, and would make a page read other
than it is. Only what is in the fields of a form stays as it is, or saving it would change it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.admin.text import UNSEEN, show_unseen

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

_FIELDS: Final = re.compile(r'(<textarea\b.*?</textarea>|\svalue="[^"]*")', re.DOTALL)


class UnseenMiddleware:
    """Shows them by their numbers, in whatever page is sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        is_page = response.get("Content-Type", "").startswith(("text/html", "image/svg"))
        if response.streaming or not is_page or "Content-Encoding" in response:
            return response
        text = response.content.decode(response.charset or "utf-8")  # type: ignore[attr-defined]
        if UNSEEN.search(text):
            shown = "".join(
                part if number % 2 else show_unseen(part)
                for number, part in enumerate(_FIELDS.split(text))
            )
            response.content = shown.encode(response.charset or "utf-8")  # type: ignore[attr-defined]
            if "Content-Length" in response:
                response["Content-Length"] = f"{len(response.content)}"  # type: ignore[attr-defined]
        return response
