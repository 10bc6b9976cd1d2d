from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from grpo_core.plugins.airlock import prove
from grpo_core.plugins.specs import RewardSpec
from grpo_core.plugins.verdicts import Admitted, Candidate, Quarantined, Stage
from tests.core.plugins.installed import one_reward, write_plugin

HEAD = """
from grpo_core.api import DatasetSpec, RewardSpec, hookimpl

GOOD = RewardSpec(name="good", summary="A reward", target="nowhere.rewards:good")
"""


def prove_source(folder: Path, source: str) -> Admitted | Quarantined:
    path = write_plugin(folder, HEAD + dedent(source), name="acme.py")
    return prove(Candidate(distribution="grpo-acme", version="1.2", modules=(str(path),)))


def fault(folder: Path, source: str) -> Quarantined:
    verdict = prove_source(folder, source)
    assert isinstance(verdict, Quarantined)
    return verdict


def test_a_sound_plugin_is_admitted_with_its_specs_and_observers(tmp_path: Path) -> None:
    verdict = prove_source(
        tmp_path,
        """
        @hookimpl
        def grpo_reward_functions():
            yield GOOD

        @hookimpl
        def grpo_run_started(started):
            raise AssertionError("observers are not called to be proved")
        """,
    )
    assert verdict == Admitted(
        distribution="grpo-acme",
        version="1.2",
        specs=(RewardSpec(name="good", summary="A reward", target="nowhere.rewards:good"),),
        modules=(str(tmp_path / "acme.py"),),
        observers=(str(tmp_path / "acme.py"),),
    )


def test_a_plugin_of_several_modules_is_admitted_whole_or_not_at_all(tmp_path: Path) -> None:
    one = write_plugin(tmp_path, one_reward("first"), name="one.py")
    two = write_plugin(tmp_path, one_reward("second"), name="two.py")
    both = prove(Candidate(distribution="grpo-acme", version="1", modules=(str(one), str(two))))
    assert isinstance(both, Admitted)
    assert [spec.name for spec in both.specs] == ["first", "second"]
    bad = write_plugin(tmp_path, "1 / 0", name="three.py")
    assert isinstance(
        prove(Candidate(distribution="grpo-acme", version="1", modules=(str(one), str(bad)))), Quarantined
    )


def test_a_list_of_specs_or_no_spec_at_all_is_fine(tmp_path: Path) -> None:
    verdict = prove_source(
        tmp_path,
        """
        @hookimpl
        def grpo_reward_functions():
            return [GOOD]

        @hookimpl
        def grpo_dataset_preprocessors():
            return ()
        """,
    )
    assert isinstance(verdict, Admitted)
    assert [spec.name for spec in verdict.specs] == ["good"]


@pytest.mark.parametrize(
    ("source", "stage", "reason", "hint"),
    [
        ("import nothing_of_this_name", "import", "ModuleNotFoundError: No module named", "Install what it needs"),
        ("def f(:", "import", "SyntaxError: invalid syntax", None),
        ("raise SystemExit(3)", "import", "it calls sys.exit(3)", "must only define its hooks"),
        ("x = 1", "hooks", "it implements no hook", "The hooks are: grpo_dataset_preprocessors"),
        ("@hookimpl\ndef grpo_reward_functions(): return None", "register", "returned None", "Yield each spec"),
        ("@hookimpl\ndef grpo_reward_functions(): return GOOD", "register", "returned a RewardSpec", "Yield each spec"),
        (
            "@hookimpl\ndef grpo_reward_functions(): return 'good'",
            "register",
            "gave 'g', not a RewardSpec",
            "RewardSpec",
        ),
        ("@hookimpl\ndef grpo_reward_functions(): return {1: 2}", "register", "gave 1, not a RewardSpec", "RewardSpec"),
        (
            "@hookimpl\ndef grpo_reward_functions():\n  while True: yield GOOD",
            "register",
            "more than 1000 specs",
            "ever end",
        ),
        ("@hookimpl\ndef grpo_reward_functions():\n  yield GOOD\n  yield GOOD", "register", "'good' twice", "unique"),
        ("@hookimpl\ndef grpo_reward_functions():\n  yield GOOD\n  raise OSError('x')", "register", "OSError: x", None),
    ],
)
def test_each_fault_is_contained_and_named(
    tmp_path: Path, source: str, stage: Stage, reason: str, hint: str | None
) -> None:
    verdict = fault(tmp_path, source)
    assert (verdict.distribution, verdict.version, verdict.stage) == ("grpo-acme", "1.2", stage)
    assert reason in verdict.reason
    assert hint is None or hint in (verdict.hint or "")


def test_a_spec_for_another_hook_is_sent_there(tmp_path: Path) -> None:
    verdict = fault(
        tmp_path,
        """
        @hookimpl
        def grpo_reward_functions():
            yield DatasetSpec(name="sums", summary="Sums", target="nowhere.sums:to_sample")
        """,
    )
    assert verdict.reason == "grpo_reward_functions gave a DatasetSpec, not a RewardSpec"
    assert verdict.hint == "grpo_dataset_preprocessors describes those."
    assert verdict.where == "acme.py:6"
    assert verdict.line == f"grpo-acme 1.2 is not loaded: {verdict.reason} (acme.py:6)"
    assert verdict.traceback is None


def test_an_exception_of_a_hook_keeps_its_place_and_traceback(tmp_path: Path) -> None:
    verdict = fault(
        tmp_path,
        """
        @hookimpl
        def grpo_reward_functions():
            yield GOOD
            raise LookupError("no second one")
        """,
    )
    assert verdict.explanation == "LookupError: no second one (acme.py:9)"
    assert verdict.traceback is not None
    assert verdict.traceback.splitlines()[-1] == "LookupError: no second one"
    assert "airlock" not in verdict.traceback


def test_ctrl_c_passes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove_source(tmp_path, "raise KeyboardInterrupt")


def test_what_a_plugin_prints_does_not_reach_the_output_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prove_source(tmp_path, "print('hello')\n@hookimpl\ndef grpo_reward_functions(): return [GOOD]")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


def test_an_entry_point_must_name_a_module() -> None:
    verdict = prove(Candidate(distribution="grpo-acme", version="1", modules=("acme.plugin:plugin",)))
    assert isinstance(verdict, Quarantined)
    assert verdict.stage == "import"
    assert verdict.reason == "its entry point names 'acme.plugin:plugin'"
    assert verdict.hint == "Name the module: 'acme.plugin'."


def test_a_module_that_is_not_there_is_the_reason(tmp_path: Path) -> None:
    verdict = prove(Candidate(distribution="grpo-acme", version="1", modules=("acme_without_files.plugin",)))
    assert isinstance(verdict, Quarantined)
    assert verdict.reason == "ModuleNotFoundError: No module named 'acme_without_files'"
    assert "acme_without_files" not in sys.modules
