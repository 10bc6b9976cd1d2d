from pathlib import Path

import pytest

from grpo_core.loop.closing import close_with_report
from tests.core.report.making import learning_run


def test_a_finished_run_has_its_report_and_a_line_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = learning_run(tmp_path / "run", steps=5)
    close_with_report(run)
    assert capsys.readouterr().out == f"report: {run / 'report.html'}\n"
    assert "sum_reward" in (run / "report.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = learning_run(tmp_path / "run", steps=5)
    (run / "report.html").mkdir()
    close_with_report(run)
    assert "the report could not be written: " in caplog.text
    assert f"`grpoctl report {run}` tries again" in caplog.text


def test_records_that_the_report_cannot_make_sense_of_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    close_with_report(tmp_path)
    assert "the report could not be written: " in caplog.text
