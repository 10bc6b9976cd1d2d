"""Ships a recipe whose names were unambiguous where it was written."""

from grpo_core.api import RecipeSpec, hookimpl


@hookimpl
def grpo_recipes():
    yield RecipeSpec(
        name="polite", summary="Says please", package="grpo_recipes_polite", path="recipes/polite.yaml"
    )
