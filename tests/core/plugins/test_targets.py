from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel, ConfigDict

from grpo_core.errors import BrokenReference, PluginError, RewardError
from grpo_core.plugins.targets import build_by_factory, build_target, file_module_name, is_target, load_target


class ScaleOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    scale: float = 1.0


def make_scaled(options: ScaleOptions, context: str) -> tuple[float, str]:
    return options.scale, context


def make_plain(options: None, context: str) -> tuple[None, str]:
    return options, context


def make_nothing() -> None:
    return None


def make_broken(options: ScaleOptions, context: object) -> object:
    raise RuntimeError("no engine")


def make_exit(options: ScaleOptions, context: object) -> object:
    sys.exit(0)


def make_refusal(options: ScaleOptions, context: object) -> object:
    raise RewardError("the judge has no key", hint="Set JUDGE_KEY.")


HERE = f"{Path(__file__)}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(
        "import neighbour_of_mine\nLOADED = []\n\n\ndef brevity(completions):\n    return [neighbour_of_mine.ONE]\n\n\n"
        "class Box:\n    content = 3\n",
        encoding="utf-8",
    )
    (tmp_path / "neighbour_of_mine.py").write_text("ONE = 1.0\n", encoding="utf-8")
    return path


def test_a_target_leads_to_an_object_of_a_module() -> None:
    assert load_target("json:dumps") is sys.modules["json"].dumps
    assert load_target("grpo_core.types:FinishReason.STOP") == "stop"


def test_a_target_leads_to_an_object_of_a_file_which_may_import_its_neighbours(file: Path) -> None:
    brevity = cast(Callable[[list[str]], list[float]], load_target(f"{file}:brevity"))
    assert brevity(["a"]) == [1.0]
    assert load_target(f"{file}:Box.content") == 3


def test_a_file_is_imported_once_under_a_name_that_depends_on_its_path_alone(file: Path) -> None:
    first = load_target(f"{file}:LOADED")
    assert load_target(f"{file}:LOADED") is first
    name = file_module_name(file)
    assert sys.modules[name].LOADED is first  # type: ignore[attr-defined]
    assert name.startswith("grpo_file_mine_")
    assert file_module_name(file.with_name("my-file.py")).startswith("grpo_file_plugin_")


def test_an_object_of_a_file_pickles_between_processes_that_loaded_it(file: Path, tmp_path: Path) -> None:
    pickled = tmp_path / "brevity.pickle"
    pickled.write_bytes(pickle.dumps(load_target(f"{file}:brevity")))
    code = (
        "import pickle, sys\nfrom grpo_core.plugins.targets import load_target\n"
        f"mine = load_target('{file}:brevity')\nassert pickle.load(open('{pickled}', 'rb')) is mine"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["json", "json:", ":dumps", "./mine.py:brevity", "json:dumps.", "my-mod:x", "", None])
def test_what_is_not_a_target(text: str | None) -> None:
    assert not is_target(text)


def test_text_that_is_no_target_says_how_targets_read() -> None:
    with pytest.raises(BrokenReference, match="'json' is not a target") as caught:
        load_target("json")
    assert caught.value.hint == "Write pkg.mod:attr or /absolute/file.py:attr."


def test_a_missing_module_names_near_ones() -> None:
    with pytest.raises(BrokenReference, match=r"there is no module 'grpo_core.type'") as caught:
        load_target("grpo_core.type:Sample")
    assert caught.value.hint == "Did you mean 'grpo_core.types'?"
    with pytest.raises(BrokenReference, match=r"there is no module 'zzqqxx', needed by 'zzqqxx.rewards:f'") as caught:
        load_target("zzqqxx.rewards:f")
    assert caught.value.hint == "Install the package that has it, or name a file: ./file.py:attr."


def test_a_missing_file_names_near_ones(file: Path) -> None:
    with pytest.raises(BrokenReference, match=r"there is no file '.*mime.py', needed by") as caught:
        load_target(f"{file.with_name('mime.py')}:brevity")
    assert caught.value.hint == "Did you mean 'mine.py'?"


def test_a_missing_folder_and_a_folder_called_like_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenReference, match=r"there is no folder '.*absent', needed by"):
        load_target(f"{tmp_path}/absent/mine.py:brevity")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(BrokenReference, match=r"folder.py' is a folder, not a Python file"):
        load_target(f"{tmp_path}/folder.py:brevity")


def test_a_missing_attribute_names_its_owner_and_near_ones(file: Path) -> None:
    with pytest.raises(BrokenReference, match="module 'json' has no 'dump_s', needed by 'json:dump_s'") as caught:
        load_target("json:dump_s")
    assert caught.value.hint is not None
    assert "'dumps'" in caught.value.hint
    with pytest.raises(BrokenReference, match=r"file '.*mine.py' has no 'brevty'") as caught:
        load_target(f"{file}:brevty")
    assert caught.value.hint == "Did you mean 'brevity'?"
    with pytest.raises(BrokenReference, match=r"'.*mine.py:Box' has no 'contents'") as caught:
        load_target(f"{file}:Box.contents")
    assert caught.value.hint == "Did you mean 'content'?"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("\n1 / 0\n", r"ZeroDivisionError: division by zero \(mine.py:2\)"),
        ("import a_module_nobody_has\n", r"ModuleNotFoundError: No module named 'a_module_nobody_has' \(mine.py:1\)"),
        ("def f(:\n", r"SyntaxError: invalid syntax \(mine.py:1\)"),
        ("raise SystemExit('bye')\n", r"it calls sys.exit\('bye'\) \(mine.py:1\)"),
    ],
)
def test_a_file_that_fails_at_import_is_reported_with_exception_and_line(
    tmp_path: Path, source: str, reason: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source, encoding="utf-8")
    for _ in range(2):  # a failed import leaves nothing behind that would hide the failure
        with pytest.raises(BrokenReference, match=rf"'{file}:f' cannot be imported: {reason}"):
            load_target(f"{file}:f")


def test_a_module_that_fails_when_an_attribute_is_asked_for_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "lazy.py"
    file.write_text("def __getattr__(name):\n    raise ImportError('no engine')\n", encoding="utf-8")
    with pytest.raises(BrokenReference, match=r"cannot be imported: ImportError: no engine \(lazy.py:2\)"):
        load_target(f"{file}:engine")


def test_ctrl_c_during_an_import_is_not_caught(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        load_target(f"{file}:f")


def test_a_component_without_options_is_the_target_itself() -> None:
    assert build_target("json:dumps", None, {}, None) is sys.modules["json"].dumps


def test_a_component_that_is_always_built_gets_no_options_where_its_spec_has_none() -> None:
    assert build_by_factory(f"{HERE}:make_plain", None, {}, "context") == (None, "context")
    assert build_by_factory(f"{HERE}:make_scaled", f"{HERE}:ScaleOptions", {}, "context") == (1.0, "context")
    with pytest.raises(PluginError, match="takes no options, but got: scale"):
        build_by_factory(f"{HERE}:make_plain", None, {"scale": 1}, None)


def test_a_factory_that_takes_other_arguments_is_told_how_it_is_called() -> None:
    with pytest.raises(PluginError, match=r"make_nothing' could not be built: TypeError: ") as caught:
        build_by_factory(f"{HERE}:make_nothing", None, {}, None)
    assert caught.value.hint == (
        "A factory is called as make(options, context); options are None where its spec has no options model."
    )
    with pytest.raises(PluginError, match="is of a kind that is built by a factory, so it must be a factory"):
        build_by_factory(f"{HERE}:HERE", None, {}, None)


def test_options_for_a_component_that_takes_none_are_an_error() -> None:
    with pytest.raises(PluginError, match="'json:dumps' takes no options, but got: scale, mode") as caught:
        build_target("json:dumps", None, {"scale": 1, "mode": 2}, None)
    assert caught.value.hint == "Remove `options`."


def test_a_factory_gets_its_validated_options_and_the_context() -> None:
    built = build_target(f"{HERE}:make_scaled", f"{HERE}:ScaleOptions", {"scale": "2"}, "context")
    assert built == (2.0, "context")


def test_wrong_options_name_each_option_and_all_that_exist() -> None:
    with pytest.raises(PluginError, match=r"wrong options for '.*make_scaled': scale: .*number.*; size: .*") as caught:
        build_target(f"{HERE}:make_scaled", f"{HERE}:ScaleOptions", {"scale": "wide", "size": 3}, None)
    assert caught.value.hint == "Options: scale."


def test_a_factory_that_raises_is_named_with_exception_and_line() -> None:
    with pytest.raises(
        PluginError, match=r"'.*make_broken' could not be built: RuntimeError: no engine \(.*test_targets"
    ):
        build_target(f"{HERE}:make_broken", f"{HERE}:ScaleOptions", {}, None)
    with pytest.raises(PluginError, match=r"'.*make_exit' could not be built: it calls sys.exit\(0\) \(.*test_targets"):
        build_target(f"{HERE}:make_exit", f"{HERE}:ScaleOptions", {}, None)


def test_an_error_meant_for_the_user_passes_a_factory_unchanged() -> None:
    with pytest.raises(RewardError) as caught:
        build_target(f"{HERE}:make_refusal", f"{HERE}:ScaleOptions", {}, None)
    assert caught.value.hint == "Set JUDGE_KEY."


def test_a_factory_must_be_callable_and_options_a_pydantic_model() -> None:
    with pytest.raises(PluginError, match=r"has options, so it must be a factory make\(options, context\); it is '/"):
        build_target(f"{HERE}:HERE", f"{HERE}:ScaleOptions", {}, None)
    with pytest.raises(PluginError, match=r"the options of '.*make_scaled', is not a pydantic model; it is '/"):
        build_target(f"{HERE}:make_scaled", f"{HERE}:HERE", {}, None)
