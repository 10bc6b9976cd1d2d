from __future__ import annotations

import pytest

from grpo_core.errors import RecipeError
from grpo_core.plugins.specs import TrackerSpec
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import HERE, SPECS, fake_host, recipe_of

CURVES = TrackerSpec(name="curves", summary="", target=f"{HERE}:make", options=f"{HERE}:BrevityOptions")
PLOTS = TrackerSpec(name="plots", summary="", target=f"{HERE}:make", requires=("no-such-plots>=3",))
HOST = fake_host(*SPECS, CURVES, PLOTS)


def _plan(**run: object) -> LaunchPlan:
    return resolve(recipe_of(run=run), {}, host=HOST)


def _problems(**run: object) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        _plan(**run)
    return [str(problem) for problem in caught.value.problems]


def test_a_run_reports_to_no_tracker_that_it_does_not_name() -> None:
    assert _plan().trackers == ()


def test_a_named_tracker_is_planned_once_with_its_options() -> None:
    (tracker,) = _plan(report_to=["curves", "curves"], tracker_options={"curves": {"limit": 2}}).trackers
    assert (tracker.name, tracker.version) == ("acme/curves", "1.2")
    assert tracker.options == {"max_characters": 200, "limit": 2.0}


def test_an_unknown_tracker_names_those_that_exist() -> None:
    assert _problems(report_to=["curve"]) == [
        "run.report_to: no plugin registers a tracker 'curve'. Did you mean 'curves'? Known: curves, plots."
    ]


def test_a_well_known_tracker_names_the_package_to_install() -> None:
    (problem,) = _problems(report_to=["wandb"])
    assert "no plugin registers a tracker 'wandb'" in problem
    assert "pip install 'grpo-trackers[wandb]'" in problem


def test_a_tracker_without_its_library_says_what_to_install() -> None:
    assert _problems(report_to=["plots"]) == [
        "run.report_to: 'plots' needs no-such-plots>=3, not installed here. pip install 'no-such-plots>=3'"
    ]


def test_a_wrong_option_of_a_tracker_is_named_by_its_path() -> None:
    (problem,) = _problems(report_to=["curves"], tracker_options={"curves": {"limt": 1}})
    assert problem.startswith("run.tracker_options.curves.limt: unknown option; did you mean 'limit'?")


def test_options_of_a_tracker_that_is_not_named_wait_and_those_of_none_are_refused() -> None:
    assert _plan(tracker_options={"curves": {"limit": 2}}).trackers == ()
    assert _problems(tracker_options={"curvs": {}}) == [
        "run.tracker_options.curvs: there is no tracker 'curvs'; did you mean 'curves'?"
    ]


def test_a_file_is_no_tracker() -> None:
    (problem,) = _problems(report_to=["./mine.py:curves"])
    assert "cannot be a tracker" in problem
