"""Plugins that exist in memory only, for tests that look components up."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.specs import ComponentSpec, DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec, TrainerSpec
from grpo_core.plugins.verdicts import Admitted
from grpo_core.recipe.schema import Recipe

HERE = "tests.core.recipe.fakes"


class BrevityOptions(BaseModel):
    """Options without `extra="forbid"`: unknown ones are refused all the same."""

    max_characters: int = 200
    limit: float = 1.0


class PickyOptions(BaseModel):
    """Options that do not go with everything else in a recipe."""

    passes: int = 1

    def contradictions(self, recipe: Recipe) -> list[tuple[str, str]]:
        wanted = recipe.trainer.num_iterations
        message = f"it is {self.passes}, and trainer.num_iterations says {wanted}"
        return [] if self.passes == wanted else [("trainer.options.passes", message)]


def brevity(completions: Sequence[str]) -> list[float]:
    return [float(len(text) < 200) for text in completions]


def to_sample(row: object) -> None:
    return None


BREVITY = RewardSpec(
    name="brevity",
    summary="Short is good",
    target=f"{HERE}:make",
    options=f"{HERE}:BrevityOptions",
    scope="group",
    pure=True,
    tasks=("chat",),
    verifies=True,
    aliases=("short",),
)
TIMED = RewardSpec(name="timed", summary="", target=f"{HERE}:brevity", budget_s=2.5, deadline_s=900.0, runs_in="worker")
SUMS = DatasetSpec(
    name="sums",
    summary="Sums",
    target=f"{HERE}:make",
    options=f"{HERE}:BrevityOptions",
    source=f"{HERE}:rows",
    hub_ids=("acme/sums",),
)
SHAPES = DatasetSpec(name="shapes", summary="Shapes", target=f"{HERE}:to_sample", hub_ids=("acme/shapes",))
HOMELESS = DatasetSpec(name="homeless", summary="", target=f"{HERE}:to_sample")
ROLLOUT = RolloutSpec(
    name="transformers", summary="", target=f"{HERE}:make", capabilities=frozenset({"weights:shared", "weights:stream"})
)
STREAMS_ONLY = RolloutSpec(name="remote", summary="", target=f"{HERE}:make", capabilities=frozenset({"weights:stream"}))
NEEDS_ENGINE = RolloutSpec(name="engine", summary="", target=f"{HERE}:make", requires=("no-such-engine>=2 | another",))
TRAINER = TrainerSpec(
    name="torch",
    summary="",
    target=f"{HERE}:make",
    capabilities=frozenset({"lora", "weights:shared", "weights:stream"}),
)
HIDES_WEIGHTS = TrainerSpec(name="hidden", summary="", target=f"{HERE}:make", capabilities=frozenset({"weights:disk"}))

PICKY = TrainerSpec(
    name="picky",
    summary="",
    target=f"{HERE}:make",
    options=f"{HERE}:PickyOptions",
    capabilities=frozenset({"weights:stream"}),
)

SPECS: tuple[ComponentSpec | RecipeSpec, ...] = (
    *(BREVITY, TIMED, SUMS, SHAPES, HOMELESS),
    *(ROLLOUT, STREAMS_ONLY, NEEDS_ENGINE, TRAINER, HIDES_WEIGHTS, PICKY),
)


def fake_host(*specs: ComponentSpec | RecipeSpec, observers: tuple[str, ...] = ()) -> PluginHost:
    """A host with one plugin, `acme`, that registers these specs (default: all above)."""
    admitted = Admitted(distribution="acme", version="1.2", specs=specs or SPECS, observers=observers)
    return PluginHost(admitted=(admitted,), quarantined=(), blocked=(), warnings=(), catalog=Catalog((admitted,)))


def recipe_of(**settings: object) -> Recipe:
    """A recipe that resolves against `fake_host`, with some sections replaced."""
    return Recipe.model_validate({"model": "m", "dataset": "sums", "rewards": ["brevity"], **settings})
