"""Which columns a registered reward takes."""

from __future__ import annotations

import pytest

from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.specs import RewardSpec
from grpo_core.trial.needs import Needs, needs_of
from tests.core.trial.making import REWARDS


def needs(attribute: str, **spec: object) -> Needs:
    made = RewardSpec(name="x", summary="x", target=f"{REWARDS}:{attribute}", **spec)  # type: ignore[arg-type]
    return needs_of(Entry(spec=made, distribution="grpo-x", version="1"))


def test_parameters_that_are_no_names_of_the_run_are_columns() -> None:
    assert needs("exact") == Needs(required=("solution",))
    assert needs("length") == Needs()
    assert needs("everything") == Needs(optional=("bonus",), takes_rest=True)


@pytest.mark.parametrize(
    ("attribute", "words"),
    [("missing", "has no 'missing'"), ("not_a_function", "is int: 3, not a function")],
)
def test_what_cannot_be_said_is_said(attribute: str, words: str) -> None:
    unknown = needs(attribute).unknown
    assert unknown is not None
    assert words in unknown


def test_options_without_a_default_leave_it_unknown() -> None:
    options = "grpo_core.reward.builtin.options:SoftOverlongOptions"
    spec = RewardSpec(name="x", summary="x", target="grpo_core.reward.builtin.overlong:make", options=options)
    unknown = needs_of(Entry(spec=spec, distribution="grpo-x", version="1")).unknown
    assert unknown is not None
    assert "options.max_length" in unknown
    assert "\n" not in unknown
