"""A dataset plugin as small as it gets, and plans of datasets without a catalog."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from grpo_core.recipe.plan import BatchPlan, LaunchPlan, PlannedComponent, PlannedDataset
from grpo_core.recipe.schema import Recipe
from grpo_core.types import BuildContext, Message, Sample

HERE = Path(__file__)


class SumOptions(BaseModel):
    """Options of the fake dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = 8
    fail_at: int | None = None
    leave_at: int | None = None


def make_rows(
    options: SumOptions, *, split: Literal["train", "evaluation"], seed: int
) -> Iterator[Mapping[str, object]]:
    """Sums; endless for evaluation."""
    offset = 1000 if split == "evaluation" else 0
    index = 0
    while split == "evaluation" or index < options.rows:
        if index == options.fail_at:
            raise ZeroDivisionError("no more sums")
        if index == options.leave_at:
            sys.exit(0)
        yield {"a": index + offset, "b": seed}
        index += 1


def make_preprocessor(options: SumOptions, context: BuildContext) -> Any:
    """State the sum; odd rows are dropped where the option `rows` is 1."""

    def to_sample(row: Mapping[str, object], /) -> Sample | None:
        text = f"{row['a']}+{row['b']}?"
        return None if options.rows == 1 else Sample(messages=(Message(role="user", content=text),), columns=row)

    return to_sample


def upper(row: Mapping[str, object], /) -> Sample | None:
    """Rows without `query` are dropped."""
    if row.get("query") is None:
        return None
    return Sample(messages=(Message(role="user", content=str(row["query"]).upper()),), columns={"was": row["query"]})


def ends_with_answer(row: Mapping[str, object], /) -> Sample:
    return Sample(messages=(Message(role="assistant", content="42"),), columns=row)


def gives_a_dict(row: Mapping[str, object], /) -> object:
    return dict(row)


def fails(row: Mapping[str, object], /) -> Sample:
    raise KeyError("nums")


def leaves(row: Mapping[str, object], /) -> Sample:
    sys.exit(0)


not_callable = 3


def component(attribute: str, *, options: bool = False, **values: object) -> PlannedComponent:
    """A function of this file as a planned component."""
    model = f"{HERE}:SumOptions" if options else None
    return PlannedComponent(name=attribute, target=f"{HERE}:{attribute}", options_model=model, options=values)


def sums(reference: str = "acme/sums", *, source: str = "make_rows", **values: object) -> PlannedDataset:
    """The fake dataset that makes its own rows."""
    preprocess = component("make_preprocessor", options=True, **values)
    return PlannedDataset(reference=reference, preprocess=preprocess, source=f"{HERE}:{source}")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def plan_of(*datasets: PlannedDataset, evaluation: PlannedDataset | None = None, **data: Any) -> LaunchPlan:
    """A launch plan whose data part is real; nothing else of it is looked at."""
    nothing = PlannedComponent(name="none", target="none:none")
    settings = {"use": datasets[0].reference, **data}
    return LaunchPlan(
        core_version="0",
        recipe=Recipe.model_validate({"model": "none", "dataset": settings, "rewards": ["none"]}),
        datasets=datasets,
        evaluation=evaluation,
        rewards=(),
        rollout=nothing,
        trainer=nothing,
        weights_route="shared",
        batch=BatchPlan(prompts_per_step=1, completions_per_prompt=2, completions_per_step=2, updates_per_step=1),
    )
