"""`grpoctl train` up to the launch; runs themselves are in tests/integration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from grpo_core.errors import GrpoError, PluginError, RecipeError, RewardError, UnknownComponent, UsageError
from grpo_core.regular_files import shown
from tests.tiny_models import make_model_folder

_NEEDED = ("--model", "m", "--dataset", "countdown", "--rewards", "countdown_reward,format_reward")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRPO_DISABLE_PLUGINS", raising=False)


def _train(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["train", *arguments])


def _problems(*arguments: str) -> list[str]:
    error = _train(*arguments).exception
    assert isinstance(error, RecipeError), error
    return list(map(str, error.problems))


def test_without_anything_all_that_is_missing_is_named_with_an_example() -> None:
    error = _train().exception
    assert isinstance(error, RecipeError)
    assert list(map(str, error.problems)) == [
        "model: required, but not set",
        "dataset: required, but not set",
        "rewards: required, but not set",
    ]
    assert error.hint is not None
    assert "grpoctl train --model" in error.hint
    assert "--recipe NAME" in error.hint


def test_the_example_is_for_those_who_lack_something() -> None:
    for rewards, has_example in (("", True), ("format_reward,format_reward", False)):
        error = _train(*_NEEDED[:4], "--rewards", rewards).exception
        assert isinstance(error, RecipeError)
        assert ("For example: grpoctl train" in str(error.hint)) == has_example


def test_three_weights_for_two_rewards() -> None:
    assert _problems(*_NEEDED, "--reward-weights", "1,0.5,2") == [
        "rewards: 3 weights (1, 0.5, 2) for 2 rewards (countdown_reward, format_reward); "
        "give one weight a reward, in the same order (--reward-weights)"
    ]


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ("1,half", 'rewards.format_reward.weight: must be a number, not "half" (--reward-weights)'),
        ("1,nan", 'rewards.format_reward.weight: must be a number, not "nan" (--reward-weights)'),
        ("1,.inf", "rewards.format_reward.weight: must be a finite number, not Infinity (--reward-weights)"),
        ("1,", "rewards.format_reward.weight: must be a number, not null (--reward-weights)"),
        ("1,true", "rewards.format_reward.weight: must be a number, not true (--reward-weights)"),
    ],
)
def test_a_weight_that_is_no_finite_number_is_named(weights: str, problem: str) -> None:
    assert _problems(*_NEEDED, "--reward-weights", weights) == [problem]


def test_weights_without_rewards_say_only_that_rewards_are_missing() -> None:
    assert _problems(*_NEEDED[:4], "--reward-weights", "1") == ["rewards: required, but not set"]


def test_an_unknown_reward_lists_the_known_ones() -> None:
    [problem] = _problems(*_NEEDED[:4], "--rewards", "countdown_rewrad")
    assert problem.startswith("rewards.countdown_rewrad.use: no plugin registers a reward 'countdown_rewrad'.")
    assert "Did you mean 'countdown_reward'" in problem
    assert "Known: " in problem
    assert "countdown_reward, format_reward, " in problem
    assert problem.endswith("(--rewards)")


@pytest.mark.parametrize("text", ["", "  "])
def test_no_reward_at_all_is_a_clear_error(text: str) -> None:
    assert _problems(*_NEEDED[:4], "--rewards", text) == ["rewards: is empty; give at least 1 (--rewards)"]


def test_an_empty_name_between_commas_is_named() -> None:
    [problem] = _problems(*_NEEDED[:4], "--rewards", "format_reward,,countdown_reward")
    assert problem == (
        "rewards: there is an empty name between the commas of 'format_reward,,countdown_reward' (--rewards)"
    )


def test_a_plugin_file_that_registers_nothing_of_that_name(tmp_path: Path) -> None:
    source = "from grpo_core.api import hookimpl\n\n\n@hookimpl\ndef grpo_recipes():\n    return []\n"
    (tmp_path / "plugin.py").write_text(source, encoding="utf-8")
    [problem] = _problems(*_NEEDED[:4], "--plugin", "plugin.py", "--rewards", "my_reward")
    assert problem.startswith("rewards.my_reward.use: no plugin registers a reward 'my_reward'")


@pytest.mark.parametrize(
    ("completions", "group", "expected"),
    [
        (7, 8, ["7 completions per step are no multiple of 8 completions per prompt; valid near it: 8;"]),
        (6, 4, ["6 completions per step are no multiple of 4 completions per prompt; valid near it: 4, 8;"]),
        (4, 0, ["must be at least 2, not 0 (--completions-per-prompt)"]),
    ],
)
def test_batches_that_cannot_be_name_those_that_can(completions: int, group: int, expected: list[str]) -> None:
    flags = ("--completions-per-step", str(completions), "--completions-per-prompt", str(group))
    for problem, part in zip(_problems(*_NEEDED, *flags), expected, strict=True):
        assert part in problem


def test_everything_wrong_is_told_at_once() -> None:
    found = _problems(
        *("--rewards", "no_reward", "--steps", "many", "--loss", "grop", "--columns", "a"),
        *("--columns", "x=y", "--columns", "x=z", "--set", "foo", "--set", "trainer.learning_rte=1"),
        *("--set", "rewards.other.weight=1", "--set", "objective={beta: 0.1, kl_estimator: k1}", "--precision", "fp8"),
    )
    starts = [
        "dataset.columns: 'a' is not old=new, as in --columns question=prompt (--columns)",
        "dataset.columns: 'x' is renamed twice (--columns)",
        "'foo' is not key=value",
        "rewards.other.weight: no reward of this recipe is named 'other'; it has: no_reward (--set)",
        "model: required",
        "dataset.use: required",
        "objective.loss: must be one of grpo, dr_grpo, dapo, bnpo, cispo, sapo, gspo, not",
        'trainer.precision: must be one of fp32, bf16, not "fp8" (--precision)',
        "trainer.learning_rte: unknown key; did you mean 'learning_rate'? (--set)",
        'run.steps: must be a whole number, not "many" (--steps)',
        "objective: kl_estimator k1 with kl_in loss",
        "rewards.no_reward.use: no plugin registers a reward 'no_reward'",
    ]
    unmatched = [start for start in starts if not any(text.startswith(start) for text in found)]
    assert (unmatched, len(found)) == ([], len(starts))


def test_flags_that_exclude_each_other_are_both_named() -> None:
    message = "epochs is 2 and steps is 5, but only one of them can hold; remove one (--epochs)"
    assert _problems(*_NEEDED, "--steps", "5", "--epochs", "2") == [f"run.epochs: {message}"]


def test_a_folder_with_something_in_it_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "plan.json").write_text("{}")
    (tmp_path / "file").write_text("")
    assert _problems(*_NEEDED, "--output", "used") == [
        "run.directory: 'used' is not empty; `grpoctl resume used` goes on with a run; "
        "for a new one choose another --output (--output)"
    ]
    assert _problems(*_NEEDED, "--output", "file") == [
        "run.directory: 'file' is a file; choose another --output (--output)"
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--recipe", "countdown-tinny"), UnknownComponent, "no plugin registers a recipe 'countdown-tinny'"),
        (("--recipe", "nothing.yaml"), RecipeError, "nothing.yaml' cannot be read: No such file"),
        ((*_NEEDED, "--set", "plugins.require=[no-such-plugin]"), PluginError, "no-such-plugin is not installed"),
        ((*_NEEDED, "--set", "plugins.disable=[grpo-core]"), UsageError, "grpo-core cannot be switched off"),
        ((*_NEEDED, "--plugin", "nothing.py"), UsageError, "there is no such Python file"),
    ],
)
def test_what_is_not_there_is_named(arguments: tuple[str, ...], error: type[GrpoError], message: str) -> None:
    raised = _train(*arguments).exception
    assert isinstance(raised, error)
    assert message in raised.message


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("folder", "'folder' is no recipe that a plugin registers; here it is a folder: name the recipe file in it"),
        ("notes", "'notes' is no recipe that a plugin registers; here it is a file: write ./notes to read it as YAML"),
        ("./folder", "folder' cannot be read: it is a folder, not a file"),
        ("broken.json", "expected the node content, but found '<stream end>' (broken.json:2)"),
    ],
)
def test_what_is_no_recipe_file_is_said_to_be_what_it_is(tmp_path: Path, recipe: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes").write_text("hello")
    (tmp_path / "broken.json").write_text('{"model": [\n')
    error = _train("--recipe", recipe).exception
    assert isinstance(error, RecipeError), error
    assert message in error.message


def test_a_recipe_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(
        '{"model": "./gone", "dataset": "countdown", "rewards": ["format_reward"],\n"run": 3}'
    )
    assert _problems("--recipe", "r.json") == [
        "run: must be a mapping of keys to values, not 3 (r.json:2)",
        f"model.path: {tmp_path}/gone: there is no such folder (r.json:1)",
    ]


def test_files_that_are_not_there_are_found_with_all_other_problems(tmp_path: Path) -> None:
    arguments = ("--model", "./gone", "--dataset", "gone.jsonl,countdown", "--eval-dataset", "./no_folder")
    assert _problems(*arguments, "--rewards", "format_reward", "--set", "model.tokenizer=./none", "--steps", "x") == [
        'run.steps: must be a whole number, not "x" (--steps)',
        f"model.path: {tmp_path}/gone: there is no such folder (--model)",
        f"model.tokenizer: {tmp_path}/none: there is no such file or folder (--set)",
        f"dataset.evaluation: {tmp_path}/no_folder: there is no such file or folder (--eval-dataset)",
        f"dataset.mix.gone.use: {tmp_path}/gone.jsonl: there is no such file or folder (--dataset)",
    ]


def test_files_are_looked_for_before_torch_is_imported() -> None:
    program = """
import sys
from grpo_core.cli.main import build_app
from grpo_core.errors import RecipeError
try:
    build_app()(["train", "--model", "./gone", "--dataset", "countdown", "--rewards", "format_reward"])
except RecipeError as error:
    sys.exit(0 if "there is no such folder" in error.message and "torch" not in sys.modules else 1)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    [problem] = _problems(*_NEEDED, "--output", "file/run")
    assert problem.startswith(f"run.directory: 'file/run' cannot be made: {tmp_path}/file is a file; choose another")
    monkeypatch.setattr(os, "access", lambda *_: False)
    [problem] = _problems(*_NEEDED, "--output", "deep/run")
    assert problem.startswith(f"run.directory: 'deep/run' cannot be made: {tmp_path} is not yours to write in; choose")


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "is empty; name a folder"),
        ("a" * 300, f"{shown('a' * 300)} can be no folder of a run: it has a name of 300 bytes"),
        ("b/" * 2020, f"{shown('b/' * 2020)} can be no folder of a run: it has "),
        ("circle", "'circle' is a symbolic link that leads nowhere; choose another"),
        ("fifo", "'fifo' is a FIFO; choose another"),
        ("fifo/run", "'fifo/run' cannot be made: "),
    ],
)
def test_a_dry_run_too_refuses_a_folder_that_cannot_be(tmp_path: Path, output: str, problem: str) -> None:
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "fifo")
    for more in ((), ("--dry-run",)):
        [found] = _problems(*_NEEDED, "--output", output, *more)
        assert found.startswith(f"run.directory: {problem}")


def test_a_disabled_plugins_reward_is_not_there() -> None:
    found = _problems(*_NEEDED, "--set", "plugins.disable=[grpo-rewards-math]")
    assert any("Not loaded, so not searched: " in problem and "grpo-rewards-math" in problem for problem in found)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("train") / "model")


def test_a_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path, model: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"query": "Say 1"}\n{"query": "Say 2"}\n')
    (tmp_path / "mine.py").write_text("def mine(completions):\n    return [0.0 for _ in completions]\n")
    (tmp_path / "r.yaml").write_text(
        f"model: {model}\ndataset: rows.jsonl\nrewards: [mine.py:mine]\n"
        "run: {prompts_per_step: 2, steps: 9}\nrollout: {max_completion_tokens: 8}\n"
    )
    done = _train("--recipe", "r.yaml", "--epochs", "3", "--completions-per-prompt", "4", "--dry-run")
    assert done.exit_code == 0, done.exception
    assert "steps: 3 = 3 epochs × 2 rows ÷ 2 prompts, rounded up" in done.stdout
    assert "a step: 2 prompts × 4 completions = 8 completions" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == ["mine.py", "r.yaml", "rows.jsonl"]
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_may_name_a_used_folder(tmp_path: Path, model: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"query": "Say 1"}\n')
    flags = ("--model", str(model), "--dataset", "rows.jsonl", "--rewards", "react_format", "--prompts-per-step", "1")
    done = _train(*flags, "--max-completion-tokens", "8", "--output", str(tmp_path), "--dry-run")
    assert done.exit_code == 0, done.exception


def test_rows_that_no_reward_can_judge_are_found_before_a_model_loads(tmp_path: Path, model: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Needs:\n"
        "    def __call__(self, completions, tests=None):\n        return [None for _ in completions]\n"
        "    def unjudgeable(self, columns):\n        return None if columns.get('tests') else 'it has no tests'\n"
        "needs = Needs()\n"
    )
    rows = ('{"query": "Say 1", "answer": "1"}\n', '{"query": "Say 2", "tests": "t"}\n')
    flags = ("--model", str(model), "--dataset", "rows.jsonl", "--rewards", "mine.py:needs")
    flags += ("--set", "rollout.max_completion_tokens=4")
    sizes = ("--prompts-per-step", "1", "--steps", "1")
    (tmp_path / "rows.jsonl").write_text(rows[0])
    for command in (("train", *flags, *sizes, "--dry-run"), ("eval", *flags)):
        error = CliRunner().invoke(build_app(), command).exception
        assert isinstance(error, RewardError), error
        assert error.exit_code == 2
        assert "cannot judge any of 1 training rows: it has no tests; the first is train-000000" in error.message
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    done = _train(*flags, *sizes, "--dry-run")
    assert done.exit_code == 0, done.exception
    assert "warning: reward 'needs' cannot judge 1 of 2 training rows: it has no tests" in done.stderr
    assert "warning: reward 'needs' cannot judge 1 of 2" in CliRunner().invoke(build_app(), ("eval", *flags)).stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['grpoctl', 'train', '--help']\n"
        "from grpo_core.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'datasets', 'grpo_core.recipe.schema'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"}
    )
    assert "--completions-per-prompt" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def grpo_reward_functions(:\n", "SyntaxError: invalid syntax (mine.py:1)"),
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name' (mine.py:1)"),
        ("x = 1\n", "it implements no hook (mine.py)"),
    ],
)
def test_a_broken_file_given_as_a_plugin_is_itself_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("mine.py").write_text(source, encoding="utf-8")
    for recipe in ((), ("--recipe", "countdown-tiny")):
        error = _train("--plugin", "./mine.py", "--model", "m", "--rewards", "of_mine", *recipe).exception
        assert isinstance(error, PluginError)
        assert error.exit_code == 3
        assert error.message == f"mine.py (file) is not loaded: {reason}"
        assert str(error.hint).endswith("Details: grpoctl plugins doctor mine.py --plugin mine.py")


def test_errors_of_data_and_model_say_who_named_them(tmp_path: Path, model: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"query": "6*7?"}\n' * 8, encoding="utf-8")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "broken" / "model.safetensors").touch()
    rewards = ("--rewards", "format_reward", "--dry-run")
    for arguments, ending in (
        (("--model", str(model), "--dataset", "bad.jsonl"), " (--dataset)"),
        (("--model", str(model), "--dataset", "rows.jsonl", "--eval-dataset", "bad.jsonl"), " (--eval-dataset)"),
        (("--model", "./broken", "--dataset", "rows.jsonl"), " (--model)"),
    ):
        error = _train(*arguments, *rewards).exception
        assert isinstance(error, GrpoError)
        assert error.message.endswith(ending)
