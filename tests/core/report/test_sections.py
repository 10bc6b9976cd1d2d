"""The parts of the page that are plain HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from grpo_core.report import sections
from grpo_core.report.findings.finding import Finding
from grpo_core.report.sections import RunParts
from tests.core.report.making import metric_rows, opened, plan_of

HOSTILE = "<img src=x onerror=alert(1)>"


def part(folder: Path, rows: Any = ({"step": 1, "reward/mean": 0.5},), **more: Any) -> RunParts:
    found = {name: more.pop(name, ()) for name in ("findings", "notes")}
    return RunParts(run=opened(folder, rows, **more), summaries=(), **found)


def cells(html: str, row: str) -> list[str]:
    """The texts of a table's row, by its first cell."""
    (found,) = re.findall(rf"<tr[^>]*><th[^>]*>{re.escape(row)}</th>(.*?)</tr>", html)
    return [re.sub(r"<[^>]*>", " ", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", found)]


def test_one_run_has_tiles_and_several_a_table_with_what_they_share_said_once(tmp_path: Path) -> None:
    one = part(tmp_path / "one", plan=plan_of(trainer={"learning_rate": 1e-5}))
    two = part(tmp_path / "two", plan=plan_of())
    assert 'class="tile"' in sections.head([one])
    both = sections.head([one, two])
    assert both.count("acme/sums") == 1
    assert cells(both, "Update") == ["dapo, learning rate 1e-05, beta 0", "dapo, learning rate 1e-06, beta 0"]
    assert both.index(">Update<") < both.index("acme/sums"), "what differs stands first"


def test_a_finding_is_a_card_with_its_level_in_words(tmp_path: Path) -> None:
    finding = Finding(rule="r", level="bad", title="T", text="Seen.", advice="Do.", metrics=("a", "b"))
    made = sections.findings([part(tmp_path / "run", findings=(finding,))])
    assert '<article class="finding bad" data-rule="r" data-metrics="a b">' in made
    assert ">Trouble<" in made
    assert "Nothing stands out." in sections.findings([part(tmp_path / "other")])


def test_evaluations_have_every_metric_with_its_change(tmp_path: Path) -> None:
    rows = [{"step": 0, "eval/tasks/a/accuracy": 0.25}, {"step": 9, "reward/mean": 1.0, "eval/tasks/a/accuracy": 0.5}]
    run = part(tmp_path / "run", rows)
    made = sections.evaluation([run])
    assert ">before<" in made
    assert cells(made, "eval/tasks/a/accuracy") == ["0.25", "0.5", "+0.25"]
    assert "reward/mean" not in made
    assert cells(sections.numbers([run]), "reward/mean") == ["1"]
    assert sections.evaluation([part(tmp_path / "none")]) == ""


def test_a_long_table_shows_some_steps_and_says_so(tmp_path: Path) -> None:
    made = sections.numbers([part(tmp_path / "run", metric_rows(reward__mean=[0.5] * 100))])
    assert "12 of 100 steps, evenly spread." in made
    assert ">step 1<" in made
    assert ">step 100<" in made


def test_settings_have_their_origin_and_what_differs_is_marked(tmp_path: Path) -> None:
    one = part(
        tmp_path / "one", plan=plan_of({"trainer.learning_rate": "mine.yaml:3"}, trainer={"learning_rate": 1e-5})
    )
    two = part(tmp_path / "two", plan=plan_of())
    three = part(tmp_path / "three")
    made = sections.settings([one, two, three])
    assert cells(made, "trainer.learning_rate") == ["1e-05  mine.yaml:3", "1e-06  default", "–"]
    assert '<tr class="differs"><th scope="row">trainer.learning_rate' in made
    two_runs = sections.settings([one, two])
    assert two_runs.index("trainer.learning_rate<") < two_runs.index("model.path<"), "what differs stands first"
    alone = sections.settings([two])
    assert '<tr class="default"><th scope="row">trainer.learning_rate' in alone
    assert sections.settings([three]) == ""


def test_notes_name_their_run_where_there_are_several(tmp_path: Path) -> None:
    one, two = part(tmp_path / "one", notes=("half a line",)), part(tmp_path / "two")
    assert "<li>one: half a line</li>" in sections.notes([one, two])
    assert "<li>half a line</li>" in sections.notes([one])
    assert "Nothing." in sections.notes([two])


def test_hostile_names_and_values_stay_text(tmp_path: Path) -> None:
    rows = [{"step": 0, f"eval/{HOSTILE}": 1.0}, {"step": 1, HOSTILE: 0.5}]
    finding = Finding(rule="r", level="note", title=HOSTILE, text=HOSTILE, metrics=(HOSTILE,))
    plan = plan_of({"model.path": HOSTILE}, model=HOSTILE)
    runs = [
        part(tmp_path / name, rows, plan=plan, findings=(finding,), notes=(HOSTILE,)) for name in ("a", "<b onclick=x>")
    ]
    for chosen in (runs, runs[:1]):
        made = [sections.head(chosen), sections.findings(chosen), sections.evaluation(chosen)]
        made += [sections.numbers(chosen), sections.settings(chosen), sections.notes(chosen)]
        assert "<img" not in "".join(made)
        assert "<b " not in "".join(made)
