from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import BrokenReference, GrpoError, PluginError, RecipeError, UnknownComponent, UsageError
from grpo_core.recipe.datasets import plan_dataset
from grpo_core.recipe.extras import EXTRAS
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.schema import MixedDataset
from tests.core.recipe.fakes import HERE, fake_host

_CATALOG = fake_host().catalog
_BASE = Path("/b")


def _plan(text: str, **more: Any) -> PlannedDataset:
    return plan_dataset(MixedDataset(use=text, **more), catalog=_CATALOG, base=_BASE)


@pytest.fixture
def modelscope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for the package being installed."""
    monkeypatch.setitem(EXTRAS, "modelscope", ("pluggy",))


def test_a_dataset_that_makes_its_rows_names_its_source() -> None:
    planned = _plan("sums#50", options={"limit": 3})
    assert planned.reference == "acme/sums#50"
    assert planned.source == f"{HERE}:rows"
    assert planned.preprocess is not None
    assert planned.preprocess.options == {"max_characters": 200, "limit": 3.0}


def test_a_registered_dataset_reads_the_file_it_is_given() -> None:
    planned = _plan("sums?path=./rows.jsonl&split=train#50")
    assert planned.reference == "/b/rows.jsonl?split=train#50"
    assert planned.source is None
    assert planned.preprocess is not None
    assert planned.preprocess.name == "acme/sums"


def test_a_registered_dataset_without_rows_of_its_own_reads_its_hub_id() -> None:
    planned = _plan("shapes?split=test#5")
    assert planned.reference == "hf:acme/shapes?split=test#5"
    assert planned.source is None


@pytest.mark.parametrize("text", ["hf:acme/sums#9", "ms:acme/sums", "acme/Shapes", "hf:ACME/shapes"])
@pytest.mark.usefixtures("modelscope")
def test_a_known_hub_id_brings_its_preprocessor(text: str) -> None:
    # `acme` is a plugin here, so the bare id below it is written with its prefix or found as another name
    planned = _plan(text if text != "acme/Shapes" else "hf:acme/Shapes")
    assert planned.preprocess is not None
    assert planned.source is None


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("rows.jsonl#5", "/b/rows.jsonl#5"),
        ("./folder", "/b/folder"),
        ("other/rows?subset=main&split=test#5", "hf:other/rows?subset=main&split=test#5"),
        ("ms:other/rows", "ms:other/rows"),
    ],
)
@pytest.mark.usefixtures("modelscope")
def test_other_rows_are_mapped_by_their_columns(text: str, reference: str) -> None:
    assert _plan(text) == PlannedDataset(reference=reference)


@pytest.mark.parametrize(
    ("text", "instead"),
    [("ms:acme/sums", "the same rows are hf:acme/sums"), ("ms:other/rows#5", "many datasets are on Hugging Face too")],
)
def test_modelscope_ids_need_its_client_or_say_what_works_instead(
    text: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXTRAS, "modelscope", ("no-such-client>=1",))
    with pytest.raises(PluginError, match="needs no-such-client>=1, not installed here") as caught:
        _plan(text)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("pip install 'grpo-core[modelscope]'; or ")
    assert instead in caught.value.hint


def test_a_preprocessor_may_be_chosen_for_files_and_hubs() -> None:
    for text in ("rows.jsonl", "hf:acme/shapes"):
        planned = _plan(text, preprocess="sums", options={"limit": 4})
        assert planned.preprocess is not None
        assert planned.preprocess.name == "acme/sums"
        assert planned.preprocess.options["limit"] == 4.0


def test_a_preprocessor_may_be_a_function_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def f(row):\n    return None\n")
    entry = MixedDataset(use="rows.jsonl", preprocess="./p.py:f")
    planned = plan_dataset(entry, catalog=_CATALOG, base=tmp_path)
    assert planned.preprocess is not None
    assert planned.preprocess.target == f"{tmp_path}/p.py:f"


@pytest.mark.parametrize(
    ("text", "more", "error", "message"),
    [
        ("smus", {}, UnknownComponent, "no plugin registers a dataset 'smus'.*Did you mean 'sums'"),
        ("acme/smus", {}, UnknownComponent, "no plugin registers a dataset 'acme/smus'"),
        ("./mine.py:f", {}, UsageError, "cannot be a dataset"),
        ("homeless", {}, UsageError, r"'homeless' has no rows of its own.*homeless\?path=./rows.jsonl"),
        (
            "sums",
            {"preprocess": "shapes"},
            UsageError,
            "so 'shapes' would have nothing.*name the rows alone: hf:acme/sums",
        ),
        ("homeless?path=a.csv", {"preprocess": "./p.py:f"}, UsageError, "rows alone: ./rows.jsonl or hf:owner/name"),
        ("sums?split=train", {}, UsageError, "unknown detail 'split'.*Known: path"),
        ("sums?limit=3", {}, UsageError, r"unknown detail 'limit'.*Known: path.*--set dataset\.options\.limit=3\."),
        ("rows.jsonl?sbset=a", {}, UsageError, "Did you mean 'subset'"),
        ("hf:a/b?slpit=a", {}, UsageError, "Did you mean 'split'"),
        ("rows.jsonl", {"preprocess": "./a.txt"}, UsageError, "cannot be a preprocessor"),
        ("rows.jsonl", {"preprocess": "nothing"}, UnknownComponent, "no plugin registers a dataset 'nothing'"),
        ("rows.jsonl", {"preprocess": "json:nothing"}, BrokenReference, "has no 'nothing'"),
        ("rows.jsonl", {"options": {"a": 1}}, RecipeError, "a file or hub id takes no options"),
        ("sums", {"options": {"limt": 1}}, RecipeError, r"options\.limt: unknown option; did you mean 'limit'"),
        ("shapes", {"options": {"a": 1}}, RecipeError, "'shapes' takes no options, but has: a"),
    ],
)
def test_what_cannot_be_planned_says_why(text: str, more: dict[str, Any], error: type[GrpoError], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        _plan(text, **more)


def test_a_name_that_is_a_folder_or_file_here_says_how_to_write_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.jsonl").touch()
    (tmp_path / "lines").touch()
    for name, what, last in (
        ("empty", "an empty folder", "folder"),
        ("rows#5", "a folder", "folder"),
        ("lines", "a file", "file"),
    ):
        with pytest.raises(UsageError) as caught:
            plan_dataset(MixedDataset(use=name), catalog=_CATALOG, base=tmp_path)
        assert caught.value.message == (
            f"no plugin registers a dataset '{name.partition('#')[0]}', but {what} of this name is here"
        )
        assert caught.value.hint == f"Write ./{name} for what is in the {last}."
