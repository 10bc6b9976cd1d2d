import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grpo_core.errors import PluginError, RecipeError, UnknownComponent
from grpo_core.plugins.namespace import Namespace, namespace_of
from grpo_core.plugins.specs import RecipeSpec
from grpo_core.recipe.entries import apply_overrides
from grpo_core.recipe.files import (
    RecipeFile,
    depends_on_its_folder,
    is_file_reference,
    locate_recipe,
    read_recipe,
    registered_recipe,
)
from grpo_core.recipe.layers import Layer
from grpo_core.recipe.overrides import parse_override
from grpo_core.recipe.validate import validate
from tests.core.recipe.fakes import fake_host


def _unknown(name: str, namespace: Namespace | None) -> RecipeFile:
    raise UnknownComponent(f"no plugin registers a recipe '{name}'")


def _read(file: Path, text: str) -> Layer:
    file.write_text(text, encoding="utf-8")
    return read_recipe(RecipeFile(path=file), find=_unknown)


def test_values_come_with_file_and_line(tmp_path: Path) -> None:
    layer = _read(tmp_path / "r.yaml", "model: a/b\ntrainer:\n  learning_rate: 1e-6\n")
    assert layer.values == {"model": {"path": "a/b"}, "trainer": {"learning_rate": 1e-6}}
    assert layer.dotted_origins() == {
        "model": "r.yaml:1",
        "model.path": "r.yaml:1",
        "trainer": "r.yaml:2",
        "trainer.learning_rate": "r.yaml:3",
    }


def test_toml_is_read_too(tmp_path: Path) -> None:
    layer = _read(tmp_path / "r.toml", 'model = "a/b"\nrewards = ["x"]\n[trainer]\nlearning_rate = 1e-6\n')
    assert layer.values["trainer"] == {"learning_rate": 1e-6}
    assert layer.origins[("trainer", "learning_rate")] == "r.toml"


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    layer = _read(tmp_path / "r.yaml", "model: ./tiny\nrewards: [./mine.py:f]\n")
    assert layer.values == {"model": {"path": f"{tmp_path}/tiny"}, "rewards": [{"use": f"{tmp_path}/mine.py:f"}]}


def test_extended_recipes_lie_below(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "root.yaml").write_text("model: ./tiny\nrun: {seed: 1, steps: 1}\n")
    (tmp_path / "base.yml").write_text("extends: sub/root.yaml\nrun: {seed: 2}\n")
    layer = _read(tmp_path / "r.yaml", "extends: ./base.yml\nrun:\n  steps: 3\n")
    assert layer.values == {"model": {"path": f"{tmp_path}/sub/tiny"}, "run": {"seed": 2, "steps": 3}}
    assert layer.dotted_origins()["run.seed"] == "base.yml:2"
    assert layer.dotted_origins()["run.steps"] == "r.yaml:3"


def test_a_registered_recipe_can_be_extended(tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text("model: a/b\n")
    (tmp_path / "r.yaml").write_text("extends: known\n")

    def find(name: str, namespace: Namespace | None) -> RecipeFile:
        return RecipeFile(path=tmp_path / f"{name}.yaml", owner="grpo-acme")

    layer = read_recipe(RecipeFile(path=tmp_path / "r.yaml"), find=find)
    assert layer.values == {"model": {"path": "a/b"}}


def test_what_a_shipped_recipe_says_keeps_its_namespace_whatever_extends_it(tmp_path: Path) -> None:
    """Also in files that it extends by path; names in what a user writes on top are the user's."""
    (tmp_path / "base.yaml").write_text("trainer: torch\nrollout: {use: transformers}\nrun: {steps: 1}\n")
    (tmp_path / "shipped.yaml").write_text(
        "extends: ./base.yaml\nplugins: {require: ['grpo-other>=1']}\nrewards: [brevity, {use: timed}]\n"
    )
    (tmp_path / "mine.yaml").write_text("extends: shipped\nrollout: {use: remote}\nrun: {steps: 2}\n")
    asked = []

    def find(name: str, namespace: Namespace | None) -> RecipeFile:
        asked.append((name, namespace))
        return RecipeFile(path=tmp_path / f"{name}.yaml", owner="grpo-acme")

    layer = read_recipe(RecipeFile(path=tmp_path / "mine.yaml"), find=find)
    namespaces = layer.dotted_namespaces()
    core, empty = frozenset({"grpo-core"}), frozenset[str]()
    assert namespaces["rewards.brevity.use"].tiers == (frozenset({"grpo-acme"}), frozenset({"grpo-other"}), core)
    assert namespaces["rewards.timed.use"] == namespaces["rewards.brevity.use"]
    assert namespaces["trainer.use"].tiers == (frozenset({"grpo-acme"}), empty, core)
    assert {"rollout.use", "run.steps"}.isdisjoint(namespaces)
    assert asked == [("shipped", None)]
    merged = apply_overrides(layer, [parse_override("rewards.timed.weight=2"), parse_override("rewards.brevity.use=x")])
    assert set(merged.dotted_namespaces()) & {"rewards.timed.use", "rewards.x.use"} == {"rewards.timed.use"}


def test_a_shipped_recipe_extends_the_recipe_of_a_name_that_it_knew(tmp_path: Path) -> None:
    (tmp_path / "shipped.yaml").write_text("extends: known\n")
    (tmp_path / "known.yaml").write_text("model: a/b\n")
    asked: list[tuple[str, Namespace | None]] = []

    def find(name: str, namespace: Namespace | None) -> RecipeFile:
        asked.append((name, namespace))
        return RecipeFile(path=tmp_path / f"{name}.yaml", owner="grpo-acme")

    read_recipe(RecipeFile(path=tmp_path / "shipped.yaml", owner="grpo-acme"), find=find)
    assert asked == [("known", namespace_of("grpo-acme"))]


def test_recipes_that_extend_each_other_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("extends: c.yaml\n")
    (tmp_path / "c.yaml").write_text("extends: b.yaml\n")
    with pytest.raises(RecipeError, match=r"extend each other: b\.yaml -> c\.yaml -> b\.yaml"):
        _read(tmp_path / "a.yaml", "extends: b.yaml\n")


def test_an_unknown_name_to_extend_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnknownComponent, match="no plugin registers a recipe 'nobody'"):
        _read(tmp_path / "r.yaml", "extends: nobody\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.yaml", "extends: [a]\n", r"extends: must be the path of a recipe file.*\['a'\] \(r\.yaml:1\)"),
        ("r.yaml", "a: 1\na: 2\n", r"the key 'a' is there twice, first in line 1 \(r\.yaml:2\)"),
        ("r.yaml", "- a\n", r"a recipe is a mapping of settings.*this is none \(r\.yaml\)"),
        ("r.toml", "a = \n", r"Invalid value.*\(r\.toml\)"),
        ("r.toml", "a = 1\na = 2\n", r"Cannot overwrite a value.*\(r\.toml\)"),
    ],
)
def test_a_file_that_is_no_recipe_says_where(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        _read(tmp_path / name, text)


def test_an_empty_file_is_an_empty_recipe(tmp_path: Path) -> None:
    assert _read(tmp_path / "r.yaml", "").values == {}


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"nothing\.yaml' cannot be read: No such file"):
        read_recipe(RecipeFile(path=tmp_path / "nothing.yaml"), find=_unknown)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xff")
    with pytest.raises(RecipeError, match=r"bytes\.yaml' is not text in UTF-8"):
        read_recipe(RecipeFile(path=tmp_path / "bytes.yaml"), find=_unknown)


@pytest.mark.parametrize(
    ("text", "is_file"),
    [("a.yaml", True), ("b.TOML", True), ("./c", True), ("~/d.yml", True), ("countdown-tiny", False)],
)
def test_files_are_told_from_names(text: str, is_file: bool) -> None:
    assert is_file_reference(text) is is_file


def test_a_relative_file_starts_at_the_base() -> None:
    assert locate_recipe("a.yaml", find=_unknown, base=Path("/b")) == RecipeFile(path=Path("/b/a.yaml"))


def test_a_recipe_that_a_plugin_ships_is_found_in_its_package() -> None:
    spec = RecipeSpec(name="shipped", summary="", package="grpo_core.recipe", path="files.py", aliases=("boxed",))
    file = registered_recipe("boxed", catalog=fake_host(spec).catalog)
    assert (file.path.name, file.owner) == ("files.py", "acme")
    assert file.path.is_file()


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("model: acme/tiny\ndataset: hf:acme/sums\nrewards: [brevity]\n", False),
        ("model: /data/model\nextends: acme\nrun: {directory: runs/a}\n", False),
        ("model: ./tiny\n", True),
        ("dataset: {mix: [sums, rows.jsonl]}\n", True),
        ("dataset: {system: ./no_such.txt}\n", True),
        ("rewards: [{use: './mine.py:f'}]\n", True),
        ("extends: ./base.yaml\n", True),
    ],
)
def test_relative_paths_tie_a_recipe_to_its_folder(tmp_path: Path, text: str, depends: bool) -> None:
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    assert depends_on_its_folder(tmp_path / "r.yaml") is depends


@pytest.mark.parametrize(("package", "path"), [("grpo_core.recipe", "no.yaml"), ("no_such_package", "a.yaml")])
def test_a_shipped_recipe_that_is_not_there_is_its_plugins_fault(package: str, path: str) -> None:
    spec = RecipeSpec(name="lost", summary="", package=package, path=path)
    with pytest.raises(PluginError, match="'acme/lost' registers a recipe file that is not there") as caught:
        registered_recipe("lost", catalog=fake_host(spec).catalog)
    assert caught.value.hint == "Report it to the author of the plugin."


_WORDS = st.sampled_from(
    ["model", "dataset", "rewards", "run", "steps", "use", "options", "extends", "trainer", "rollout", "weight", "name"]
)
_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(_WORDS, _DATA) | _DATA)
def test_whatever_a_file_says_it_is_a_recipe_or_an_error_of_recipes(tmp_path: Path, data: object) -> None:
    import yaml

    file = tmp_path / "fuzz.yaml"
    file.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    with contextlib.suppress(RecipeError, UnknownComponent):
        validate(read_recipe(RecipeFile(path=file), find=_unknown))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_whatever_bytes_a_file_has_it_is_a_recipe_or_an_error_of_recipes(tmp_path: Path, text: str) -> None:
    for name in ("fuzz.yaml", "fuzz.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogatepass")
        with contextlib.suppress(RecipeError):
            validate(read_recipe(RecipeFile(path=tmp_path / name), find=_unknown))
