from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import UsageError
from grpo_core.plugins.references import check_details, check_form, parse_reference

BASE = Path("/recipes")

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
IDENTIFIERS = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
DOTTED = st.lists(IDENTIFIERS, min_size=2, max_size=3).map(".".join)
FOLDERS = st.text("abc #?&%=:é.", min_size=1, max_size=8).filter(lambda text: text.strip() and text == text.strip())
HUB_IDS = st.tuples(WORDS, WORDS).map("/".join)
BODIES = st.one_of(
    WORDS,
    HUB_IDS,
    HUB_IDS.map(lambda text: f"hf:{text}"),
    HUB_IDS.map(lambda text: f"ms:{text}"),
    st.tuples(DOTTED, IDENTIFIERS).map(":".join),
    st.tuples(IDENTIFIERS, IDENTIFIERS).map(lambda pair: f"./{pair[0]}.py:{pair[1]}"),
    FOLDERS.map(lambda text: "/data/" + text.translate({ord(c): f"%{ord(c):02X}" for c in "#?&%"})),
)
QUERIES = st.dictionaries(IDENTIFIERS, st.text("ab/. é#?&%=:", min_size=1, max_size=6), max_size=3)


@given(body=BODIES, query=QUERIES, rows=st.none() | st.integers(1, 10**9))
def test_the_full_spelling_of_a_reference_reads_as_the_same_reference(
    body: str, query: dict[str, str], rows: int | None
) -> None:
    escaped = {key: value.translate({ord(c): f"%{ord(c):02X}" for c in "#?&%"}) for key, value in query.items()}
    text = body + ("?" if query else "") + "&".join(f"{key}={value}" for key, value in escaped.items())
    text += "" if rows is None else f"#{rows}"
    if text != text.strip():
        text += "#1"  # blanks around a reference are not part of it
    reference = parse_reference(text, base=BASE)
    again = parse_reference(str(reference))
    assert again == reference
    assert str(again) == str(reference)
    assert pickle.loads(pickle.dumps(reference)) == reference
    assert {key: value for key, value in reference.details.items() if key != "path"} == {
        key: value for key, value in query.items() if key != "path"
    }


@given(text=st.text() | st.text("ab/.:#?&=%-~ hfms1", max_size=20))
def test_any_text_is_a_reference_that_can_be_written_again_or_refused_with_a_hint(text: str) -> None:
    try:
        reference = parse_reference(text, base=BASE)
    except UsageError as error:
        hint, reference = error.hint, None
    if reference is None:
        assert hint
        return
    assert parse_reference(str(reference), base=BASE) == reference
    assert parse_reference(str(reference), base=Path("/elsewhere")) == reference


@pytest.mark.parametrize("text", ["0 /", "./rows /.", "countdown?path=./a /", "./a /#3"])
def test_a_path_that_ends_in_a_blank_can_be_written_again(text: str) -> None:
    reference = parse_reference(text, base=BASE)
    assert parse_reference(str(reference), base=BASE) == reference


def test_a_comma_in_a_path_can_be_written_where_commas_separate() -> None:
    assert parse_reference("./a%2Cb.jsonl", base=BASE).path == BASE / "a,b.jsonl"
    assert parse_reference("./a,b.jsonl", base=BASE).path == BASE / "a,b.jsonl"


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("countdown", "name", "countdown"),
        ("countdown-qwen2.5-3b", "name", "countdown-qwen2.5-3b"),
        ("grpo-rewards-math/countdown", "name", "grpo-rewards-math/countdown"),
        ("Jiayi-Pan/Countdown-Tasks-3to4", "name", "Jiayi-Pan/Countdown-Tasks-3to4"),
        ("hf:openai/gsm8k", "hub", "openai/gsm8k"),
        ("ms:owner/name.json", "hub", "owner/name.json"),
        ("pkg.mod:attr", "object", "pkg.mod:attr"),
        ("mod:Class.make", "object", "mod:Class.make"),
        ("./mine.py:brevity", "object", "/recipes/mine.py:brevity"),
        ("mine.py:brevity", "object", "/recipes/mine.py:brevity"),
        ("../mine.py:brevity", "object", "/mine.py:brevity"),
        ("./rows", "path", "/recipes/rows"),
        ("runs/lora/final", "path", "/recipes/runs/lora/final"),
        ("my runs/final", "path", "/recipes/my runs/final"),
        ("/data/rows", "path", "/data/rows"),
        ("rows.jsonl", "path", "/recipes/rows.jsonl"),
        ("sub/rows.PARQUET", "path", "/recipes/sub/rows.PARQUET"),
        ("./a%23b%3Fc.csv", "path", "/recipes/a#b?c.csv"),
        ("  countdown ", "name", "countdown"),
    ],
)
def test_each_form_is_told_from_its_spelling(text: str, form: str, value: str) -> None:
    reference = parse_reference(text, base=BASE)
    assert (reference.form, reference.value) == (form, value)
    assert reference.text == text.strip()


def test_details_and_rows_follow_in_that_order() -> None:
    reference = parse_reference("hf:owner/name?subset=main&split=train#50000")
    assert reference.hub == "hf"
    assert reference.details == {"subset": "main", "split": "train"}
    assert reference.rows == 50_000


def test_the_detail_path_starts_at_the_recipes_folder_too() -> None:
    reference = parse_reference("geoqa?path=./file.parquet&note=./file.parquet#20", base=BASE)
    assert reference.details == {"path": "/recipes/file.parquet", "note": "./file.parquet"}
    assert str(reference) == "geoqa?path=/recipes/file.parquet&note=./file.parquet#20"


def test_without_a_base_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_reference("./rows.jsonl").path == tmp_path / "rows.jsonl"


def test_a_tilde_is_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse_reference("~/rows.jsonl", base=BASE).value == "/home/ada/rows.jsonl"


def test_a_bare_owner_and_name_may_be_an_id_of_a_hub() -> None:
    assert parse_reference("owner/name").may_be_hub_id
    assert not parse_reference("name").may_be_hub_id
    assert not parse_reference("hf:owner/name").may_be_hub_id


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("./mine.py:brevity", "brevity"),
        ("pkg.mod:Rewards.brevity", "brevity"),
        ("grpo-acme/brevity", "brevity"),
        ("hf:owner/rows", "rows"),
        ("./rows.jsonl", "rows"),
        ("/", ""),
    ],
)
def test_the_short_name_is_the_last_part(text: str, short: str) -> None:
    assert parse_reference(text).short_name == short


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "a reference is empty", "Write a registered name"),
        ("#3", "'#3' names nothing", "Write a registered name"),
        ("?split=train", r"'\?split=train' names nothing", "Write a registered name"),
        ("x#0", "'#0' is not a number of rows of at least 1", "rows.jsonl#500"),
        ("x#" + "9" * 5000, "is not a number of rows of at least 1 and at most 12 digits", "rows.jsonl#500"),
        ("x#", "'#' is not a number of rows", "written %23"),
        ("x#1e3", "'#1e3' is not a number of rows", "a number of rows"),
        ("x#3?split=train", "is not a number of rows", "Details come before the number of rows"),
        ("x?", "'' is not key=value", r"\?subset=main&split=train"),
        ("x?split", "'split' is not key=value", r"\?subset=main"),
        ("x?split=", "'split=' is not key=value", r"\?subset=main"),
        ("x?a=1&a=2", "gives 'a' twice", "Keep one"),
        ("./mine.py:", "names no attribute after ':'", "Write ./mine.py:my_function"),
        ("pkg.mod:", "names no attribute after ':'", "Write pkg.mod:my_function"),
        ("pkg.mod:my-reward", "'my-reward' is not a Python name", "a function of the module"),
        ("./mine.py:a b", "'a b' is not a Python name", "a function of the module"),
        ("s3:bucket/rows", "'s3:' is not a known prefix", "hf: and ms:"),
        ("https://example.org/rows.jsonl", "'https:' is not a known prefix", "hf: and ms:"),
        ("trl:accuracy_reward", r"another trainer \('trl:'\) cannot be used yet", "./mine.py:my_reward"),
        ("verl:gsm8k", r"another trainer \('verl:'\) cannot be used yet", "./mine.py:my_reward"),
        ("swift:external_r1v_acc", r"another trainer \('swift:'\) cannot be used yet", "./mine.py:my_reward"),
        ("hf:", "'' is not an id of a hub", "Write hf:owner/name"),
        ("ms:a/b/c", "'a/b/c' is not an id of a hub", "Write ms:owner/name"),
        ("two words", "'two words' is not a reference", "Names have letters"),
        ("~nobody-of-that-name/rows", "~nobody-of-that-name is no user's home", "in full"),
    ],
)
def test_malformed_text_is_an_error_that_says_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_reference(text)
    assert caught.value.hint is not None
    assert hint.replace("\\", "") in caught.value.hint
    assert caught.value.exit_code == 2


def test_a_reference_of_a_form_that_cannot_be_used_says_which_can() -> None:
    reference = parse_reference("./rows.jsonl")
    assert check_form(reference, ("path", "name"), what="a dataset") is reference
    with pytest.raises(UsageError, match=r"'./rows.jsonl' is a path, which cannot be a reward") as caught:
        check_form(reference, ("name", "object"), what="a reward")
    assert caught.value.hint == "Write a registered name or file.py:function."


def test_a_file_without_its_function_asks_for_the_function() -> None:
    with pytest.raises(UsageError) as caught:
        check_form(parse_reference("./mine.py"), ("name", "object"), what="a reward")
    assert caught.value.hint == "Name the function in it: ./mine.py:my_function."


def test_an_unknown_detail_names_the_nearest_known_one() -> None:
    reference = parse_reference("rows.jsonl?splt=train")
    with pytest.raises(UsageError, match=r"unknown detail 'splt' in 'rows.jsonl") as caught:
        check_details(reference, ("split", "subset"))
    assert caught.value.hint == "Did you mean 'split'? Known: split, subset."
    with pytest.raises(UsageError) as caught:
        check_details(reference, ())
    assert caught.value.hint == "Nothing can follow '?' here."


def test_rows_are_for_datasets_only() -> None:
    reference = parse_reference("./mine.py:brevity#20")
    with pytest.raises(UsageError, match="asks for #20 rows, but is not a dataset") as caught:
        check_details(reference, ())
    assert caught.value.hint == "Remove the '#'."
    assert check_details(reference, (), rows=True) is reference
