"""HTML from text that nobody vouches for."""

from __future__ import annotations

import html
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.markup import Html, join, tag


def test_text_is_escaped_and_html_is_not() -> None:
    assert tag("p", "a < b", Html("<br>"), title='"x"') == '<p title="&quot;x&quot;">a &lt; b<br></p>'
    assert tag("td", class_="a", data_rule="b", title=None) == '<td class="a" data-rule="b"></td>'


@given(st.text(), st.text())
def test_whatever_text_goes_in_comes_out_as_text(child: str, attribute: str) -> None:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
            found.append(name)

    made = tag("p", child, title=attribute)
    Reader().feed(made)
    assert found == ["p"]
    assert html.unescape(made.removesuffix("</p>").partition(">")[2]) == html.unescape(html.escape(child))
    assert join(child) == html.escape(child)
