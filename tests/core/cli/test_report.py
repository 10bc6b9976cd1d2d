"""grpoctl report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.report.making import learning_run, plan_of, write_run
from tests.integration.runs import grpoctl


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        learning_run(tmp_path / name, steps=20)
    return tmp_path


def test_the_report_of_a_run_is_in_its_folder(workplace: Path) -> None:
    done = grpoctl(workplace, "report", "one")
    assert done.stdout.startswith("one/report.html (0.")
    assert (workplace / "one" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert done.stderr == ""


def test_the_report_of_several_runs_is_here_or_where_one_says(workplace: Path) -> None:
    assert grpoctl(workplace, "report", "one", "two").stdout.startswith("report.html (")
    assert grpoctl(workplace, "report", "one", "two", "-o", "both.html").stdout.startswith("both.html (")
    assert (workplace / "both.html").stat().st_size == (workplace / "report.html").stat().st_size


def test_a_report_replaces_a_report_and_no_other_file(workplace: Path) -> None:
    grpoctl(workplace, "report", "one", "two")
    grpoctl(workplace, "report", "one", "two")
    (workplace / "report.html").write_text("<p>mine</p>", encoding="utf-8")
    refused = " ".join(grpoctl(workplace, "report", "one", "two", code=2).stderr.split())
    assert "report.html is there and is no report, so it is not overwritten Name another file with --output." in refused
    assert (workplace / "report.html").read_text(encoding="utf-8") == "<p>mine</p>"


def test_what_was_left_out_is_noted_on_stderr(workplace: Path) -> None:
    with (workplace / "one" / "metrics.jsonl").open("a") as file:
        file.write('{"half')
    done = grpoctl(workplace, "report", "one")
    assert "note: one: metrics.jsonl: line 22, the last, is only half written" in done.stderr.replace("\n", " ")


def test_what_is_no_run_is_a_usage_error(workplace: Path) -> None:
    write_run(workplace / "young", [], plan=plan_of())
    (workplace / "empty").mkdir()
    assert "there is no folder" in grpoctl(workplace, "report", "missing", code=2).stderr
    assert "neither plan.json nor metrics.jsonl" in grpoctl(workplace, "report", "empty", code=2).stderr
    assert "has no metrics yet" in grpoctl(workplace, "report", "one", "young", code=2).stderr
    assert "Missing argument" in grpoctl(workplace, "report", code=2).stderr


def test_a_report_needs_no_engine(workplace: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from grpo_core.report.write import write_report;"
        f"write_report([Path({str(workplace / 'one')!r})], Path({str(workplace / 'light.html')!r}));"
        "assert not {'torch', 'transformers', 'datasets', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
