"""What a run needs before any weight is loaded: data read, rewards bound, prompts rendered, numbers derived.

Everything a user can get wrong in data, rewards and settings is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grpo_core.data.feed import Feed, PromptSet
from grpo_core.data.fingerprint import fingerprint
from grpo_core.data.preflight import preflight_warnings
from grpo_core.data.prepare import Data, load_data
from grpo_core.data.prompts import Prompt, RenderedPrompts, render_prompts
from grpo_core.data.stream import PromptStream
from grpo_core.errors import DataError, Problem, RecipeError, RewardError
from grpo_core.model.ends import end_note, never_ends_warning
from grpo_core.model.freeze import count_frozen
from grpo_core.model.json_files import generation_warning
from grpo_core.model.load import context_length, require_sound_weights, require_weights, vocabulary_size
from grpo_core.model.lora import learning_rate_warning
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import load_vision
from grpo_core.objective import presets
from grpo_core.plugins.references import parse_reference
from grpo_core.recipe.numbers import total_steps
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.problems import origin_of, with_origins
from grpo_core.reward.check import BoundReward, check_rewards, claim_warnings
from grpo_core.reward.place import own_words
from grpo_core.reward.screening import screen_rows
from grpo_core.reward.workers import workers_for
from grpo_core.types import BuildContext, Sample

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The data of a run, ready to be asked, and what was noticed on the way."""

    feed: Feed
    """Training prompts, and which of them a step asks."""
    evaluation: tuple[Prompt, ...]
    """Held-out prompts; empty: no evaluation."""
    columns: frozenset[str]
    """What rewards can bind to."""
    total_steps: int
    """Of the whole run."""
    fingerprint: str
    """Of training and evaluation rows; a resumed run compares it."""
    notes: tuple[str, ...]
    """Rows that were left out, with their number and reason; where rewards run what a model writes; end tokens that the
    model's files do not agree about."""
    warnings: tuple[str, ...]
    """What is allowed and probably not meant."""
    reserved_ids: frozenset[int] = frozenset()
    """Tokens that stand for images and that no completion may have; none where the model reads text only."""
    image_text: str | None = None
    """The model's own text for an image in a prompt; None where it reads text only."""

    @property
    def train(self) -> tuple[Prompt, ...]:
        """All training prompts."""
        return self.feed.prompts

    @property
    def longest_prompt(self) -> int:
        """Tokens of the longest training prompt."""
        return max(len(prompt.token_ids) for prompt in self.train)


def prepare(plan: LaunchPlan, *, run_dir: Path | None = None) -> Prepared:
    """Read data, bind rewards, render prompts; raises the first class of errors it meets, all of that class at once."""
    with with_origins(plan.origins):
        return _prepare(plan, BuildContext(seed=plan.recipe.run.seed, run_dir=run_dir))


def _prepare(plan: LaunchPlan, context: BuildContext) -> Prepared:
    recipe = plan.recipe
    check_objective(plan)
    workers_for(recipe.scoring.workers)
    data = read_data(plan, context)
    require_image_backends(plan, data)
    rewards = bind_rewards(plan, data, context)
    unjudged = screen(rewards, data)
    require_weights(recipe.model)
    count_frozen(recipe.model, recipe.trainer)  # which looks at each name
    limit, vocabulary = prompt_limit(plan), vocabulary_size(recipe.model)
    tokenizer, vision = load_tokenizer(recipe.model), load_vision(recipe.model)
    render = partial(
        render_prompts,
        tokenizer=tokenizer,
        max_prompt_tokens=limit,
        over_long=recipe.dataset.over_long,
        template_options=recipe.model.chat_template_options,
        vocabulary=vocabulary,
        vision=vision,
    )

    def render_some(samples: Sequence[Sample]) -> Sequence[Prompt]:
        return render(samples, may_be_empty=True).prompts

    train, evaluation = [render(each.samples) for each in data.sets], render(data.evaluation)
    require_sound_weights(recipe.model)
    sets = [
        PromptSet(
            name=each.dataset.name,
            weight=each.dataset.weight or len(rendered.prompts),
            prompts=rendered.prompts,
            stream=None
            if each.stream is None
            else PromptStream(
                each.stream, render_some, seed=recipe.run.seed, shuffles=recipe.dataset.order == "shuffled"
            ),
        )
        for each, rendered in zip(data.sets, train, strict=True)
    ]
    feed = Feed(sets, prompts_per_step=plan.batch.prompts_per_step, seed=recipe.run.seed, order=recipe.dataset.order)
    longest = recipe.rollout.max_completion_tokens
    of_ends = filter(
        None,
        [generation_warning(recipe.model), never_ends_warning(tokenizer, recipe.model, recipe.rollout.stop, longest)],
    )
    return Prepared(
        feed=feed,
        evaluation=evaluation.prompts,
        columns=data.columns,
        total_steps=total_steps(recipe, rows=feed.rows),
        fingerprint=fingerprint([*data.train, *data.evaluation]),
        notes=(
            *(f"{count} rows left out: {reason}" for reason, count in data.dropped.items() if count),
            *reward_notes(rewards),
            *filter(None, [end_note(tokenizer, recipe.model)]),
        ),
        warnings=tuple(dict.fromkeys([*gather_warnings(plan, data, [*train, evaluation]), *unjudged, *of_ends])),
        reserved_ids=frozenset() if vision is None else vision.reserved_ids,
        image_text=None if vision is None else vision.placeholder,
    )


def require_image_backends(plan: LaunchPlan, data: Data) -> None:
    """Raise `RecipeError` where rows have images and the rollout or the trainer reads none."""
    first = next((sample for sample in (*data.train, *data.evaluation) if sample.images), None)
    if first is None:
        return
    problems = [
        Problem(
            path=f"{kind}.use",
            message=f"the sample {first.id} has images, and '{backend.name}' reads text only; choose a {kind} backend "
            "with the capability `images` (`grpoctl plugins list` shows them)",
            origin=origin_of(f"{kind}.use", plan.origins),
        )
        for kind, backend in (("rollout", plan.rollout), ("trainer", plan.trainer))
        if "images" not in backend.capabilities
    ]
    if problems:
        raise RecipeError(problems)


def read_data(plan: LaunchPlan, context: BuildContext) -> Data:
    """The samples; an error about a file or hub id that a setting names says who set it."""
    try:
        return load_data(plan, context)
    except DataError as error:
        data = plan.recipe.dataset
        for path, reference in (("dataset.evaluation", data.evaluation), ("dataset.use", data.use)):
            origin = origin_of(path, plan.origins)
            if origin and reference and parse_reference(reference).value in error.message:
                error.message += f" ({origin})"
                break
        raise


def bind_rewards(plan: LaunchPlan, data: Data, context: BuildContext) -> tuple[BoundReward, ...]:
    """The rewards, built and bound; `RewardError` for those that do not fit the data: a fault of the recipe, since
    nothing has run yet."""
    try:
        return check_rewards(plan.rewards, data.columns, context)
    except RewardError as error:
        error.exit_code = RecipeError.exit_code
        raise


def screen(rewards: Sequence[BoundReward], data: Data) -> tuple[str, ...]:
    """Warnings of rows that rewards cannot judge; `RewardError` for a reward that can judge none, as above."""
    try:
        return screen_rows(rewards, {"training": data.train, "evaluation": data.evaluation})
    except RewardError as error:
        error.exit_code = RecipeError.exit_code
        raise


def reward_notes(rewards: Iterable[BoundReward]) -> Iterator[str]:
    """What rewards say of where they run what a model writes."""
    for reward in rewards:
        words = own_words(reward.function)
        if words:
            yield f"{reward.planned.name}: {words}"


def gather_warnings(plan: LaunchPlan, data: Data, rendered: Sequence[RenderedPrompts]) -> Iterator[str]:
    """What is allowed and probably not meant, of data, rewards and loss; `rendered`: what became of all samples."""
    yield from data.warnings
    for each in rendered:
        yield from each.warnings
    prompts = [prompt for each in rendered for prompt in each.prompts]
    yield from preflight_warnings([reward.component.name for reward in plan.rewards], prompts)
    yield from claim_warnings(plan.rewards, data.train)
    updates, advantage = plan.batch.updates_per_step, plan.recipe.advantage
    yield from presets.warnings(plan.recipe.objective, updates_per_step=updates, advantage=advantage)
    yield from filter(None, [learning_rate_warning(plan.recipe.trainer)])


def check_objective(plan: LaunchPlan) -> None:
    """Raise `RecipeError` for settings of the loss that cannot work."""
    problems = presets.problems(plan.recipe.objective)
    if problems:
        raise RecipeError([Problem(path="objective", message=text) for text in problems])


def prompt_limit(plan: LaunchPlan) -> int | None:
    """The longest prompt in tokens: as set, and never more than the context leaves beside a completion."""
    recipe = plan.recipe
    context = context_length(recipe.model)
    if context is None:
        return recipe.dataset.max_prompt_tokens
    room = context - recipe.rollout.max_completion_tokens
    if room < 1:
        raise RecipeError(
            [
                Problem(
                    path="rollout.max_completion_tokens",
                    message=f"{recipe.rollout.max_completion_tokens} leaves no room for a prompt: the model's context "
                    f"is {context} tokens; use at most {context - 1}",
                )
            ]
        )
    return min(room, recipe.dataset.max_prompt_tokens or room)
