"""`grpoctl rewards`: list, try, test, audit, rescore."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from grpo_core.errors import (
    BrokenReference,
    DataError,
    GrpoError,
    RecipeError,
    RewardError,
    UnknownComponent,
    UsageError,
)
from tests.core.plugins.installed import write_plugin
from tests.core.trial.making import REWARDS
from tests.core.trial.stored_run import make_run

PLUGIN = """
    from grpo_core.api import RewardSpec, hookimpl
    from pydantic import BaseModel, ConfigDict

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        answer: str = "yes"

    def make(options, context):
        def agrees(completions, **columns):
            return [float(text == options.answer) for text in completions]
        return agrees

    @hookimpl
    def grpo_reward_functions():
        yield RewardSpec(
            name="agrees",
            summary="1.0 for [yes]",
            target=f"{__file__}:make",
            options=f"{__file__}:Options",
            aliases=("consents",),
            tasks=("polls",),
            runs_in="worker",
            budget_s=2.5,
        )
        yield RewardSpec(name="heavy", summary="Needs more", target="nowhere.at:all", requires=("no-such-engine>=3",))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    return str(write_plugin(tmp_path, PLUGIN, name="polls.py"))


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(f'{{"query": "Six times {n}?", "solution": {6 * n}}}\n' for n in range(1, 9)), encoding="utf-8"
    )
    return str(file)


def rewards(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    ran = CliRunner().invoke(build_app(), ["rewards", *arguments], input=stdin, catch_exceptions=False)
    assert ran.exit_code == code, ran.output
    return ran


def facts(*arguments: str, code: int = 0) -> Any:
    return json.loads(rewards(*arguments, "--json", code=code).stdout)


def error(kind: type[GrpoError], *arguments: str) -> str:
    with pytest.raises(kind) as caught:
        rewards(*arguments)
    return str(caught.value)


def test_list_shows_what_is_registered(plugin: str) -> None:
    shown = rewards("list", "--plugin", plugin).stdout
    line = next(line for line in shown.splitlines() if line.startswith("agrees; (consents)"))
    assert line.split()[2:] == ["polls.py", "one", "sample", "worker,", "2.5", "s", "polls", "1.0", "for", "[yes]"]
    assert "needs no-such-engine>=3, which is not installed" in shown


def test_list_as_json_says_how_each_is_called(plugin: str) -> None:
    by_name = {each["qualified_name"]: each for each in facts("list", "--plugin", plugin)}
    assert by_name["polls.py/agrees"] == {
        "name": "agrees",
        "qualified_name": "polls.py/agrees",
        "distribution": "polls.py",
        "version": "(file)",
        "summary": "1.0 for [yes]",
        "aliases": ["consents"],
        "scope": "sample",
        "runs_in": "worker",
        "budget_s": 2.5,
        "tasks": ["polls"],
        "pure": False,
        "verifies": False,
        "missing_requirements": [],
        "cases": None,
    }
    assert by_name["grpo-core/format_reward"]["cases"].endswith("format_reward.jsonl")


LOOK = """
import contextlib, sys
from grpo_core.cli import main as cli
sys.argv = ["grpoctl", "rewards", *ARGUMENTS]
with contextlib.suppress(SystemExit):
    cli.main()
heavy = [module for module in ("torch", "transformers", "datasets") if module in sys.modules]
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["try", "format_reward", "--completion", "a", "--row", "x=1"],
        ["test", "format_reward"],
        ["audit", "format_reward", "--dataset", "ROWS"],
    ],
)
def test_looking_at_a_reward_imports_no_engine(arguments: list[str], rows: str) -> None:
    given = [rows if each == "ROWS" else each for each in arguments]
    code = LOOK.replace("ARGUMENTS", repr(given))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_list_says_which_columns_a_reward_takes_when_asked(plugin: str) -> None:
    by_name = {each["name"]: each["columns"] for each in facts("list", "--columns", "--plugin", plugin)}
    assert by_name["countdown_reward"]["required"] == ["nums", "target"]
    assert by_name["agrees"]["takes_rest"] is True
    assert by_name["heavy"]["unknown"].startswith("'heavy' needs no-such-engine")
    shown = rewards("list", "--columns", "--plugin", plugin).stdout
    assert "nums; target" in shown
    assert "unknown: 'heavy' needs" in shown
    assert "…" in shown


def test_try_shows_the_score_and_what_the_reward_was_called_with() -> None:
    shown = rewards(
        "try",
        "countdown_reward",
        *("--completion", "<answer>3 + 4</answer>", "--row", "nums=[3, 4]", "--row", '{"target": 7, "level": 1}'),
    ).stdout.splitlines()
    assert shown[0].startswith("countdown_reward (grpo-rewards-math ")
    assert shown[1] == "  score       1"
    assert "              nums = [[3, 4]]  (column nums)" in shown
    assert "  not read    level" in shown
    assert "  ran         in this process" in shown
    assert any(line.startswith("  time        ") for line in shown)


def test_try_as_json_has_everything(rows: str) -> None:
    found = facts("try", f"{REWARDS}:everything", "--completion", "ab", "--completion", "\ud7ff", "--row", rows)
    assert found["scores"] == [0.5, 0.5]
    assert found["failures"] == [None, None]
    assert found["records"] == {"letters": [2, 1]}
    assert found["arguments"]["solution"] == {"column": "solution", "value": [6, 6]}
    assert found["arguments"]["prompts"] == {"column": None, "value": ["Six times 1?", "Six times 1?"]}
    assert found["where"] == "in this process"
    assert found["claimed"] is True


def test_try_takes_a_completion_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("<think>a</think><answer>b</answer>", encoding="utf-8")
    (tmp_path / "prompt.txt").write_text("assistant: <think>", encoding="utf-8")
    file, prompt = f"@{tmp_path}/said.txt", f"@{tmp_path}/prompt.txt"
    assert facts("try", "format_reward", "--completion", file)["scores"] == [1.0]
    assert facts("try", "format_reward", "--completion", file, "--prompt", prompt)["scores"] == [0.0]
    assert (
        "score       1"
        in rewards("try", "format", "--completion", "-", stdin="<think>a</think><answer></answer>").stdout
    )


def test_try_says_none_and_failed_and_that_tokens_are_stand_ins() -> None:
    shown = rewards("try", f"{REWARDS}:boxed", "--completion", "x", "--row", '{"solution": null}').stdout
    assert "score       does not apply (None)" in shown
    shown = rewards("try", f"{REWARDS}:empty_is_an_error", "--completion", "", "--row", "solution=1", code=4).stdout
    assert "score       failed: raised ZeroDivisionError" in shown
    shown = rewards("try", f"{REWARDS}:tokens", "--completion", "a b", "--completion", "a").stdout
    assert "score 2     1" in shown
    assert "token ids are stand-ins" in shown


def test_try_passes_a_reward_by_whose_task_is_another(plugin: str) -> None:
    shown = rewards("try", "agrees", "--plugin", plugin, "--completion", "yes", "--row", "task=maths").stdout
    assert "score       does not apply (None)" in shown
    assert "it is meant for polls, and the row's task is another" in shown


def test_try_takes_options_and_records_by_the_settings_of_a_run(plugin: str) -> None:
    no = ("--completion", "no", "--plugin", plugin)
    assert facts("try", "consents", *no)["scores"] == [0.0]
    found = facts("try", "consents", *no, "--set", 'rewards.consents.options.answer="no"')
    assert found["scores"] == [1.0]
    assert found["where"] == "in a killable worker, 2.5 s an answer"
    shown = rewards("try", f"{REWARDS}:everything", "--completion", "abc").stdout
    assert "  recorded    letters = [3]" in shown


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["try", "mth_reward", "--completion", "a"], UnknownComponent, "no plugin registers a reward 'mth_reward'"),
        (["try", "./nowhere.py:f", "--completion", "a"], BrokenReference, "nowhere.py"),
        (["try", "./mine.py", "--completion", "a"], UsageError, "cannot be a reward"),
        (["try", "format,repetition", "--completion", "a"], UsageError, "names 2 rewards"),
        (["try", "format", "--completion", "@/no/file"], UsageError, "--completion @/no/file: the file cannot be read"),
        (["try", "format", "--completion", "a", "--row", "x"], UsageError, "--row x: is neither JSON"),
        (["try", f"{REWARDS}:exact", "--completion", "a"], RewardError, "its parameter 'solution' is neither"),
        (["try", f"{REWARDS}:not_a_function", "--completion", "a"], RewardError, "not a function"),
        (
            ["try", "repetition", "--completion", "a", "--set", "rewards.repetition.options.ngram=2"],
            RecipeError,
            "rewards.repetition.options.ngram: unknown option",
        ),
        (["try", "format", "--completion", "a", "--set", "rewards.fromat.weight=2"], RecipeError, "is named 'fromat'"),
        (["test", f"{REWARDS}:exact"], UsageError, "ships no cases"),
        (["test", "format", "--cases", "/no/cases.jsonl"], DataError, "there is no such file"),
        (["audit", "format", "--dataset", "/no/rows.jsonl"], DataError, "there is no such file"),
        (["audit", "format", "--dataset", "countdown,gsm"], UsageError, "2 datasets are named"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], kind: type[GrpoError], words: str) -> None:
    assert words in error(kind, *arguments)


def test_a_file_that_is_no_text_is_no_completion(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    assert "it is not UTF-8 text" in error(UsageError, "try", "format", "--completion", f"@{tmp_path}/image.png")


def test_test_counts_what_is_as_expected_and_shows_the_rest(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"completion": "<answer>6</answer>", "columns": {"solution": 6}, "expected": 1},
        {
            "completion": ["6", "<answer>6</answer>"],
            "columns": {"solution": 6},
            "expected": [1, None],
            "why": "[b]no[/b]",
        },
        {"completion": "7", "columns": {"solution": 6}, "expected": "failed", "name": "seven"},
    ]
    cases.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    lines = rewards("test", f"{REWARDS}:exact", "--cases", str(cases), code=4).stdout.splitlines()
    assert [line.split()[:5] for line in lines[:2]] == [
        ["case", "expected", "score", "completion", "why"],
        ["cases.jsonl", "line", "2", "[0]", "1"],
    ]
    assert "[b]no[/b]" in lines[1]
    assert "does not apply" in lines[2]
    assert lines[3].split()[:3] == ["seven", "failed", "0"]
    assert lines[4] == f"1 of 4 as expected  {cases}"
    found = facts("test", f"{REWARDS}:exact", "--cases", str(cases), code=4)
    assert (found["passed"], found["failed"], found["cases"]) == (1, 3, str(cases))
    assert found["failures"][2] == {
        "place": "cases.jsonl line 3",
        "name": "seven",
        "completion": "7",
        "expected": "failed",
        "score": 0.0,
        "failure": None,
        "why": "",
    }


def test_test_takes_the_cases_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def short(completions):\n    return [float(len(t) < 3) for t in completions]\n")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "short.jsonl").write_text('{"completion": "ab", "expected": 1}\n', encoding="utf-8")
    assert rewards("test", f"{tmp_path}/mine.py:short").stdout.startswith("1 of 1 as expected")


def test_test_puts_a_cases_options_over_those_of_the_command(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [{"completion": "x", "completion_ids": [1, 2, 1, 2], "expected": -1 / 3}]
    rows.append({**rows[0], "options": {"ngram_size": 3}, "expected": 0})
    cases.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    more = ("--cases", str(cases), "--set", "rewards.repetition.options.ngram_size=2")
    assert rewards("test", "repetition", *more).stdout.startswith("2 of 2 as expected")


def test_audit_shows_what_a_reward_pays_for(rows: str) -> None:
    lines = rewards("audit", f"{REWARDS}:boxed", "--dataset", rows).stdout.splitlines()
    assert lines[:2] == ["boxed: 8 of 8 rows", "the right answer: column solution, in \\boxed{}"]
    table = {line[:34].strip(): line[34:].split() for line in lines if line.startswith(("the reference,", "nothing"))}
    assert table["the reference, in \\boxed{}"] == ["be", "paid", "1.000", "8", "0", "0", "ok"]
    assert table["nothing"] == ["not", "be", "paid", "0.000", "8", "0", "0", "ok"]
    assert any(line.startswith("off the main thread") and line.endswith("ok") for line in lines)
    assert lines[-1] == "every control is as it should"


def test_audit_names_a_control_that_fails_with_an_example(rows: str) -> None:
    more = ("--dataset", rows, "--rows", "3")
    lines = rewards("audit", f"{REWARDS}:contains", *more, code=4).stdout.splitlines()
    assert "all answers in one: it is no answer and scores 1, more than 0.1" in lines
    assert '  train-000000 "18, 6, 36" scores 1' in lines
    assert lines[-1] == "5 controls fail"
    found = facts("audit", f"{REWARDS}:contains", *more, code=4)
    assert found["problems"] == 5
    assert found["reference"] == {"column": "solution", "form": "bare"}
    assert found["rows"] == 3
    wrong = next(each for each in found["controls"] if each["name"] == "all answers in one")
    assert wrong["example"] == {
        "sample_id": "train-000000",
        "completion": "18, 6, 36",
        "score": 1.0,
        "failure": None,
        "note": "",
    }


def test_audit_shows_a_program_with_its_lines_and_their_indentation(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    programs = [f"def {name}(x):\n    return '\x1b' + x" for name in ("f", "g")]
    rows = [json.dumps({"query": "?", "solution": program}) for program in programs]
    file.write_text("\n".join(rows), encoding="utf-8")
    lines = rewards("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4).stdout.splitlines()
    place = lines.index("another row's reference: it is no answer and scores 1, more than 0.1")
    assert lines[place + 1 : place + 4] == [
        "  train-000000 scores 1:",
        "    | def g(x):",
        "    |     return '\\x1b' + x",
    ]
    found = facts("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4)
    wrong = next(each for each in found["controls"] if each["name"] == "another row's reference")
    assert wrong["example"]["completion"] == programs[1]


def test_audit_puts_the_body_of_a_function_below_its_prompt(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"query": f"def {name}(x):", "solution": f"    return x + {place}"} for place, name in enumerate("fg")]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = facts("audit", f"{REWARDS}:mentions_def", "--dataset", str(file), code=4)["reference"]
    assert found == {"column": "solution", "form": "bare", "after_the_prompt": True}


def test_audit_marks_a_control_that_cannot_be_made_of_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"query": "?", "solution": "yes"}\n' * 2, encoding="utf-8")
    lines = rewards("audit", f"{REWARDS}:boxed", "--dataset", str(file)).stdout.splitlines()
    unmade = [line for line in lines if line.endswith("not made")]
    assert [line.split("  ")[0] for line in unmade] == [
        "another row's reference",
        "the reference in the thinking only",
        "a digit too many in front",
        "a digit too many behind",
        "all answers in one",
        "all answers, one by one",
    ]


def test_audit_says_what_another_way_of_scoring_changes(rows: str) -> None:
    shown = rewards("audit", f"{REWARDS}:counts_calls", "--dataset", rows, "--high", "0", "--low", "2", code=4).stdout
    assert "scored again: the same completion scores differently" in shown
    assert ", then " in shown
    assert "controls fail" in shown


def test_audit_does_not_judge_a_reward_that_knows_nothing_of_the_row(rows: str) -> None:
    shown = rewards("audit", "format_reward", "--dataset", f"{rows}#4").stdout
    assert "no controls about the right answer: it reads no column of the data" in shown
    assert "not be paid" not in shown


def test_audit_counts_rows_of_other_tasks_and_passes_warnings_on(tmp_path: Path, plugin: str) -> None:
    file = tmp_path / "rows.jsonl"
    lines = [
        json.dumps({"messages": [{"role": "user", "content": "?"}], "query": "x", "task": task, "solution": "yes"})
        for task in ("polls", "maths")
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    ran = rewards("audit", "agrees", "--plugin", plugin, "--dataset", str(file))
    assert "agrees: 1 of 2 rows, 1 of other tasks left out" in ran.stdout
    assert "warning: " in ran.stderr
    assert "the column query is not part of it" in ran.stderr


def test_audit_of_the_countdown_dataset_finds_the_column_that_the_reward_does_not_get() -> None:
    found = facts(
        "audit", "countdown_reward", "--dataset", "countdown", "--set", "dataset.options.rows=40", "--rows", "4"
    )
    assert found["reference"] == {"column": "solution", "form": "in <answer>"}
    assert found["problems"] == 0


def test_rescore_shows_means_before_and_after(tmp_path: Path) -> None:
    run = str(make_run(tmp_path))
    lines = rewards("rescore", run, "--reward-weights", "3").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["step", "total", "totals", "changed", "exact"],
        ["1", "0.1667", "→", "0.5000", "1", "0.1667", "→", "0.1667"],
        ["2", "0.1667", "→", "0.5000", "1", "0.1667", "→", "0.1667"],
        ["all", "0.1667", "→", "0.5000", "2", "0.1667", "→", "0.1667"],
    ]


def test_rescore_writes_every_completion_and_leaves_the_run_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    output = tmp_path / "out.jsonl"
    found = facts("rescore", str(run), "--rewards", f"{REWARDS}:length", "--step", "2", "-o", str(output))
    assert [step["step"] for step in found] == [2]
    assert found[0]["rewards"]["length"]["before"] is None
    assert found[0]["totals_changed"] == 6
    written = [json.loads(line) for line in output.read_bytes().split(b"\n")[:-1]]
    assert [row["total"] for row in written] == [18.0, 1.0, 25.0] * 2
    assert written[0]["old_scores"] == {"exact": 1.0}
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_rescore_overwrites_nothing_and_leaves_no_half_file(tmp_path: Path) -> None:
    run, output = make_run(tmp_path), tmp_path / "out.jsonl"
    output.write_text("mine", encoding="utf-8")
    assert "is there already" in error(UsageError, "rescore", str(run), "-o", str(output))
    assert output.read_text(encoding="utf-8") == "mine"
    assert "cannot be made: No such file or directory" in error(UsageError, "rescore", str(run), "-o", "/no/dir/x")
    (run / "completions" / "step-000002.jsonl").write_text("{", encoding="utf-8")
    error(DataError, "rescore", str(run), "-o", str(tmp_path / "half.jsonl"))
    assert not (tmp_path / "half.jsonl").exists()


def test_rescore_warns_of_failed_scores(tmp_path: Path) -> None:
    run = str(make_run(tmp_path))
    ran = rewards("rescore", run, "--rewards", f"{REWARDS}:not_finite")
    assert "warning: 12 scores failed; these completions have no total; first: returned nan" in ran.stderr
    assert " -" in ran.stdout


def test_rescore_of_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in error(GrpoError, "rescore", str(tmp_path))
