"""The page as text: complete by itself, and closed to what models write."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.report.markup import Html, tag
from grpo_core.report.page import fill, json_block, render

SLOTS = dict.fromkeys(("head", "findings", "evaluation", "numbers", "settings", "notes"), Html(""))
HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "{{script}}", "\u2028\u2029\x00", "\ud800"]


def inside(block: str) -> Any:
    return json.loads(re.fullmatch(r'<script type="application/json" id="data">(.*)</script>', block, re.DOTALL)[1])  # type: ignore[index]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_inside_its_block_and_comes_out_unchanged(text: str) -> None:
    block = json_block({"text": text})
    assert block.count("<") == 2
    assert inside(block) == {"text": text}
    block.encode("utf-8")


@given(st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none()))
def test_any_data_comes_out_of_its_block_as_it_went_in(data: dict[str, Any]) -> None:
    assert inside(json_block(data)) == data


def test_what_json_does_not_know_is_refused_rather_than_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_block({"a": float("nan")})


def test_a_slot_inside_a_slot_is_not_filled() -> None:
    assert fill("{{a}}{{b}}", {"a": Html("{{b}}"), "b": Html("x")}) == "{{b}}x"


def test_the_page_asks_for_nothing_from_anywhere() -> None:
    made = render(title="run", parts=SLOTS, data={})
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", made))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of a namespace, which nobody fetches"
    assert not re.search(r"<link|<img|<iframe|\ssrc=|@import|url\((?!#)|fetch\(|XMLHttpRequest|import\(", made)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", made)


def test_the_policy_allows_exactly_the_script_and_the_style_of_the_page() -> None:
    made = render(title="run", parts=SLOTS, data={})
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
    assert policy.startswith("default-src &#x27;none&#x27;")
    for element in ("script", "style"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src &#x27;sha256-{digest}&#x27;" in policy


def test_a_title_is_text() -> None:
    made = render(title="<script>x</script>", parts=SLOTS, data={})
    assert "<title>&lt;script&gt;x&lt;/script&gt;</title>" in made
    assert tag("h1", "<script>x</script>") in made
