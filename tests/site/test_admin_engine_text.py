"""What somebody said, as HTML: readable, and unable to do anything to the page."""

from __future__ import annotations

import pytest

from engine.admin.text import SHOWN_AT_MOST, render_text, show_unseen


def inner(text: str) -> str:
    """Return the HTML of a text without its frame."""
    html = str(render_text(text))
    start, end = '<div class="sim-text" dir="auto">', "</div>"
    assert html.startswith(start)
    assert html.endswith(end)
    return html[len(start) : -len(end)].strip()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "<p>plain</p>"),
        ("**bold** and _em_", "<p><strong>bold</strong> and <em>em</em></p>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("# Title", "<p><strong>Title</strong></p>"),
        ("a `b` c", "<p>a <code>b</code> c</p>"),
        (
            "[site](https://a.example)",
            '<p><a href="https://a.example" rel="noopener noreferrer nofollow">site</a></p>',
        ),
        ("3. three\n4. four", '<ol start="3">\n<li>three</li>\n<li>four</li>\n</ol>'),
    ],
)
def test_render_text_shows_markdown(text: str, html: str) -> None:
    assert inner(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        (
            "<form action=/x><input></form>",
            "<p>&lt;form action=/x&gt;&lt;input&gt;&lt;/form&gt;</p>",
        ),
        ("<b id=q style=x>b</b>", "<p>&lt;b id=q style=x&gt;b&lt;/b&gt;</p>"),
        ("<style>body{}</style>", "<p>&lt;style&gt;body{}&lt;/style&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>"),
        (
            "[x](/admin/auth/user/1/delete/ 'title')",
            '<p><a rel="noopener noreferrer nofollow">x</a></p>',
        ),
        ("[x](//evil.example)", '<p><a rel="noopener noreferrer nofollow">x</a></p>'),
        (
            "![i](http://evil.example/i.png)",
            '<p>!<a href="http://evil.example/i.png" rel="noopener noreferrer nofollow">i</a></p>',
        ),
        ("a\u202egnp.exe\u2066b", "<p>a[U+202E]gnp.exe[U+2066]b</p>"),
    ],
)
def test_render_text_disarms_what_is_hostile(text: str, html: str) -> None:
    assert inner(text) == html


def test_render_text_cuts_what_is_very_long_and_says_so() -> None:
    whole, cut = inner("x" * SHOWN_AT_MOST), inner("x" * (SHOWN_AT_MOST + 7))

    assert "more characters" not in whole
    assert cut.endswith('<p class="sim-quiet">… and 7 more characters.</p>')
    assert cut.count("x") == SHOWN_AT_MOST


def test_show_unseen_keeps_line_ends_and_letters() -> None:
    assert show_unseen("a\tb\nשלום\u200b\x00") == "a\tb\nשלום[U+200B][U+0000]"
