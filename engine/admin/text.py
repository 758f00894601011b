"""Agents' and people's text as HTML that can do nothing to the page around it.

Everything that was said is untrusted. Markdown is rendered without raw HTML, then everything but
a short list of tags is taken out: no form, image, style, id or script gets through. Characters
that turn the direction of writing are shown by their number instead of acting.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererProtocol
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

SHOWN_AT_MOST: Final = 8_000
"""Characters of one message on a page: a text made to be slow takes a tenth of a second then."""

TAGS: Final = frozenset(
    "a blockquote br code em hr li ol p pre s strong table tbody td th thead tr ul".split()
)
_ATTRIBUTES: Final = {"*": set[str](), "a": {"href"}, "ol": {"start"}}
# Absolute addresses alone: a relative link would lead to an action of this admin.
_ABSOLUTE: Final = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_SCHEMES: Final = {"http", "https", "mailto"}
# Marks that reorder the text after them, and control characters that a browser shows as nothing.
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]"
)


def show_unseen(text: str) -> str:
    """Return `text` with its reordering and invisible characters replaced by their numbers."""
    return UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def render_text(text: str, *, at_most: int = SHOWN_AT_MOST) -> SafeString:
    """Return the HTML of what somebody said, of at most so many characters.

    The block isolates its direction of writing, so that nothing in it reorders its neighbours.
    """
    clipped = text[:at_most]
    rendered = _MARKDOWN.render(show_unseen(clipped))
    allowed = nh3.clean(
        rendered,
        tags=set(TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_absolute_links,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    n_more = len(text) - len(clipped)
    rest = (
        format_html('<p class="sim-quiet">… and {} more characters.</p>', n_more) if n_more else ""
    )
    # nh3 has let through nothing but the tags above.
    html = mark_safe(allowed)  # noqa: S308
    return format_html('<div class="sim-text" dir="auto">{}{}</div>', html, rest)


def _absolute_links(_tag: str, attribute: str, value: str) -> str | None:
    return value if attribute != "href" or _ABSOLUTE.match(value) else None


def _bold_open(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    return "<p><strong>"


def _bold_close(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    return "</strong></p>\n"


def _markdown() -> MarkdownIt:
    """Return a renderer whose headings are bold lines: the outline belongs to the page."""
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True})
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.add_render_rule("heading_open", _bold_open)
    markdown.add_render_rule("heading_close", _bold_close)
    return markdown


_MARKDOWN: Final = _markdown()
