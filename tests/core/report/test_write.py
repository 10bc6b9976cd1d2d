"""From run folders to the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import UsageError
from grpo_core.report.run import open_runs
from grpo_core.report.write import make_page, write_report
from tests.core.report.making import answer_row, learning_run, plan_of, write_run

ONE_STEP = [{"step": 1, "reward/mean": 0.5}]


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_report_holds_every_kind_of_record(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    write_report([learning_run(tmp_path / "run", steps=30)], output)
    text = output.read_text(encoding="utf-8")
    (run,) = data_of(text)["runs"]
    assert run["curves"]["steps"] == list(range(1, 31))
    assert run["evaluations"]["steps"] == [0, 15, 30]
    assert run["rewards"] == ["sum_reward", "format_reward"]
    assert len(run["completions"]) == 30 * 16
    assert {(answer["step"], answer["drawn"]) for answer in run["probes"]} >= {(0, "greedy"), (30, "sampled")}
    assert [answer["failures"] for answer in run["completions"] if "failures" in answer] == [
        {"sum_reward": "ValueError: not a sum"}
    ]
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"


def test_one_page_has_one_budget_for_all_its_runs(tmp_path: Path) -> None:
    runs = open_runs([learning_run(tmp_path / name, steps=60, text=lambda *_: "x" * 3000) for name in "ab"])
    alone = len(make_page(runs[:1], budget_bytes=400_000))
    both = make_page(runs, budget_bytes=400_000)
    assert len(both) < 1.25 * alone
    for run in data_of(both)["runs"]:
        assert "of 960 completions are here" in run["said"]["completions"]
        assert run["said"]["probes"].startswith("The texts of ")


def test_what_cannot_be_read_is_said_in_the_page_and_given_to_the_caller(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ONE_STEP, plan=plan_of(), completions={1: [answer_row()]})
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "rew')
    (run / "completions" / "step-000002.jsonl").write_text("garbage\n" * 30)
    (made,) = write_report([run], tmp_path / "report.html")
    assert made.notes[0] == "metrics.jsonl: line 2, the last, is only half written and was left out"
    assert len(made.notes) == 31
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "is only half written" in text
    assert "and 11 more of this kind" in text


def test_a_report_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ONE_STEP)
    with pytest.raises(UsageError, match=r"is a folder\n  Name a file: --output .*report\.html"):
        write_report([run], tmp_path)
    with pytest.raises(UsageError, match=r"cannot be written: No such file or directory"):
        write_report([run], tmp_path / "missing" / "report.html")


def test_a_run_with_nothing_but_an_evaluation_has_a_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{"step": 0, "eval/accuracy": 0.5}])
    assert data_of(make_page(open_runs([run]), budget_bytes=100))["runs"][0]["curves"]["steps"] == []


@pytest.mark.parametrize("text", ["</script><script>document.title='owned'</script>", "<img src=x onerror=alert(1)>"])
def test_what_a_model_wrote_is_data_only(tmp_path: Path, text: str) -> None:
    row = answer_row(completion=text, prompt=text, columns={text: text}, records={text: text}, sample_id=text)
    row |= {"scores": {text: None}, "failures": {text: text}}
    run = write_run(tmp_path / "run", ONE_STEP, completions={1: [row]}, probes={0: [row | {"drawn": "greedy"}]})
    made = make_page(open_runs([run]), budget_bytes=10**6)
    assert text not in made
    assert made.count("</script>") == 2
    assert data_of(made)["runs"][0]["completions"][0]["text"] == text
