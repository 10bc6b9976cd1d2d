"""Every setting of a run, with its default and its meaning. Unknown keys are errors.

The docstring under a field is its help text, in the documentation and in `grpoctl recipe explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from grpo_core.recipe import ranges
from grpo_core.recipe.scalars import misread_kind

__all__ = [
    "AdvantageSettings",
    "DataSettings",
    "EvaluationSettings",
    "ImportanceSettings",
    "LoraSettings",
    "MixedDataset",
    "ModelSettings",
    "ObjectiveSettings",
    "PluginSettings",
    "Recipe",
    "RewardEntry",
    "RolloutSettings",
    "RunSettings",
    "ScoringSettings",
    "TrainerSettings",
]

LossName = Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "gspo"]


class Section(BaseModel):
    """A part of a recipe: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _scalars_as_written(cls, value: object, info: ValidationInfo) -> object:
        """pydantic would take `t` for true and true for 1."""
        kind = misread_kind(cls.model_fields[info.field_name or ""].annotation, value)
        if kind is not None:
            raise PydanticCustomError(kind, "another kind of value")
        return value


def _shorthand(key: str) -> BeforeValidator:
    """Accept plain text where a section is expected: it is the value of `key`."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class ModelSettings(Section):
    """The policy."""

    path: str
    """A folder in Hugging Face layout, a `.gguf` file, `pkg:package/file.gguf` (a file that an installed Python package
    ships), or a hub id. A relative path in a recipe file starts at that file."""
    tokenizer: str | None = None
    """Folder or hub id of the tokenizer; default: the model's own."""
    chat_template: str | None = None
    """A Jinja template, or the path of a file with one; default: the tokenizer's own."""
    chat_template_options: dict[str, Any] = Field(default_factory=dict)
    """Variables of the chat template for all prompts, such as `enable_thinking: false`; a row's column
    `chat_template_kwargs` wins."""
    revision: str | None = None
    """Branch, tag or commit of a hub id."""
    trust_remote_code: bool = False
    """Run Python code that the model's repository ships."""
    max_pixels: Annotated[int | None, ranges.PIXELS] = Field(default=None, ge=1, le=2**26)
    """The most pixels of one image, which bounds its visual tokens: larger ones are scaled down. Default: the variable
    MAX_PIXELS, else what the model's processor says."""


class MixedDataset(Section):
    """One of several training datasets."""

    use: str
    """A reference, as in `dataset.use`."""
    name: str | None = None
    """Its name in sample ids, in metrics and in the column `dataset`; default: the end of `use`."""
    weight: Annotated[float | None, ranges.SHARES] = Field(default=None, ge=1e-9, le=1e12)
    """Its share of the prompts, relative to the other weights; default: its number of rows. All have one, or none."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of a registered dataset."""
    preprocess: str | None = None
    """As `dataset.preprocess`, which is the default."""
    columns: dict[str, str] | None = None
    """As `dataset.columns`, which is the default."""
    system: str | None = None
    """As `dataset.system`, which is the default."""


class DataSettings(Section):
    """Where prompts come from and how rows become samples."""

    use: str | None = None
    """The training dataset, a reference: a registered name, a file or folder, `hf:owner/name?split=train#50000`.
    Required, unless there is a `mix`."""
    mix: tuple[Annotated[MixedDataset, _shorthand("use")], ...] = ()
    """Several training datasets, instead of `use`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of a registered dataset."""
    preprocess: str | None = None
    """A registered dataset's name or `file.py:function` that makes samples of rows; default: the dataset's own, else
    the mapping of well-known column names."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Columns to rename before anything else, old name -> new name."""
    system: str | None = None
    """A system prompt, or the path of a file with one; a row's own system prompt wins."""
    order: Literal["shuffled", "file"] = "shuffled"
    """In which order rows are asked: `shuffled` anew by the seed in each pass, or as they stand in the `file`, for a
    curriculum; each dataset of a mix by itself."""
    max_prompt_tokens: Annotated[int | None, ranges.TOKENS] = Field(default=None, ge=1, le=ranges.MOST)
    """The longest prompt allowed, in tokens; default: what the model's context leaves beside a completion."""
    over_long: Literal["drop", "error", "truncate"] = "drop"
    """What happens to longer prompts: dropped (and counted), an error, or their beginning cut off."""
    bad_images: Literal["error", "drop"] = "error"
    """What happens to rows with a missing or broken image: an error before training, or dropped and counted."""
    evaluation: str | None = None
    """A dataset for evaluation, a reference as in `use`. Its prompts are never trained on."""
    evaluation_rows: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """How many rows to evaluate on. Without `evaluation` these are made by the dataset's own source, or taken out of
    the training rows; with it, they are its first rows. Default: all rows of `evaluation`, or no evaluation."""


class RewardEntry(Section):
    """One reward of a run."""

    use: str
    """A reference: a registered name, `file.py:function` or `pkg.mod:function`."""
    name: str | None = None
    """Its name in metrics; default: the registered name, or the function's name."""
    weight: Annotated[float, ranges.ADVANTAGES] = Field(default=1.0, ge=-1e6, le=1e6)
    """Its factor in the total."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the reward, checked against its own model."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Parameter name -> the dataset column it gets, where the two differ."""
    tasks: tuple[str, ...] | None = None
    """Values of the `task` column it scores; default: those of its spec; empty: all."""
    scope: Literal["sample", "group", "step"] | None = None
    """What it must see at once: one completion (`sample`), all of a prompt (`group`) or all of the step (`step`).
    Default: what its spec says, for a function from a file its attribute `scope`, else `sample`."""
    runs_in: Literal["main", "worker"] | None = None
    """`worker`: in a killable process. Default: what its spec says, `main` for a function from a file."""
    deadline_s: Annotated[float | None, ranges.SECONDS] = Field(default=None, ge=1e-3, le=1e6)
    """Outer deadline of one call, in seconds; exceeding it is a failure, not a 0. Default: what its spec says, 300 for
    most."""


class ScoringSettings(Section):
    """How scores become totals, and what is done about failures."""

    reduce: Literal["sum", "mean"] = "sum"
    """Weighted sum, or weighted mean, of the scores that apply."""
    max_failed_share: float = Field(default=0.1, ge=0, le=1)
    """The run stops when more than this share of a reward's scores in one step failed."""
    workers: int | None = Field(default=None, ge=1)
    """Processes for rewards that run in workers, at most 32 a CPU core; default: the cores, divided among the ranks on
    the machine."""


class RolloutSettings(Section):
    """How completions are drawn."""

    use: str = "transformers"
    """The rollout backend."""
    completions_per_prompt: Annotated[int, ranges.GROUPS] = Field(default=8, ge=2, le=10**6)
    """G, the size of a group."""
    max_completion_tokens: Annotated[int, ranges.TOKENS] = Field(default=512, ge=1, le=ranges.MOST)
    """The most tokens of one completion."""
    temperature: Annotated[float, ranges.TEMPERATURES] = Field(default=1.0, ge=0.01, le=100)
    """Logits are divided by it, in sampling and in the policy that is trained."""
    top_p: Annotated[float, ranges.SHARES] = Field(default=1.0, ge=1e-6, le=1)
    """Draw from the smallest set of tokens with at least this probability; 1: off."""
    top_k: Annotated[int, ranges.TOKENS] = Field(default=0, ge=0, le=ranges.MOST)
    """Draw from the k likeliest tokens; 0: off."""
    min_p: float = Field(default=0.0, ge=0, lt=1)
    """Draw from tokens at least this fraction as likely as the likeliest; 0: off."""
    repetition_penalty: Annotated[float, ranges.FLOAT32] = Field(default=1.0, ge=0.01, le=100)
    """Makes tokens that already occurred less likely; 1: off."""
    stop: tuple[str, ...] = ()
    """Texts that end a completion."""
    max_staleness: Literal[0, 1] = 0
    """How many steps completions may be behind. 0: they are drawn with the newest weights. 1: those of the next step
    are drawn while this one's update is computed, by an engine that runs outside the trainer's processes."""
    max_gap_nats: Annotated[float, ranges.FLOAT32] = Field(default=0.3, ge=1e-9, le=1e6)
    """The run stops when trainer and engine give the drawn tokens of a step log-probabilities that differ by more than
    this on average: another template, shifted positions or stale weights. Rounding in bf16 stays below 0.05; in fp32 on
    both sides 0.001 can be asked for."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the backend."""


class AdvantageSettings(Section):
    """How much better than expected a completion was."""

    estimator: Literal["group_mean", "rloo", "reinforce_plus_plus"] = "group_mean"
    """`group_mean` (GRPO): minus the group's mean. `rloo`: minus the mean of the others of the group.
    `reinforce_plus_plus`: minus the group's mean, then normalised over the step."""
    scale: Literal["std", "none", "batch"] = "std"
    """What `group_mean` is divided by: the group's standard deviation, nothing (Dr. GRPO), or that of the step."""
    tolerance: Annotated[float, ranges.ADVANTAGES] = Field(default=1e-6, ge=0, le=1e6)
    """A group whose totals differ by no more than this has no signal: its advantages are exactly 0."""


class ImportanceSettings(Section):
    """Correction for the difference between the engine that sampled and the model that is trained."""

    correction: Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask", "off"] = "token_truncate"
    """Weight of a token: exp(trainer - sampler) capped at `cap`; or 0 outside [1/cap, cap]; `sequence_*`: the same for
    the geometric mean over a completion."""
    cap: Annotated[float, ranges.FLOAT32] = Field(default=2.0, ge=1, le=1e6)
    """The largest weight."""


class ObjectiveSettings(Section):
    """The loss."""

    loss: LossName = "dapo"
    """A preset: surrogate, ratio level and denominator. `bnpo` is `dapo`: the same once denominators are those of the
    update."""
    clip_low: Annotated[float | None, ranges.FLOAT32] = Field(default=None, ge=0, le=1e6)
    """The ratio is clipped below at 1 - clip_low; default: the preset's."""
    clip_high: Annotated[float | None, ranges.FLOAT32] = Field(default=None, ge=0, le=1e6)
    """The ratio is clipped above at 1 + clip_high; for `cispo` the cap of the ratio itself. Default: the preset's."""
    dual_clip: Annotated[float | None, ranges.FLOAT32] = Field(default=None, gt=1, le=1e6)
    """For negative advantages the ratio counts at most this much."""
    sapo_temperature_positive: Annotated[float, ranges.FLOAT32] = Field(default=1.0, ge=1e-3, le=1e3)
    """SAPO's gate for positive advantages."""
    sapo_temperature_negative: Annotated[float, ranges.FLOAT32] = Field(default=1.05, ge=1e-3, le=1e3)
    """SAPO's gate for negative advantages."""
    beta: Annotated[float, ranges.FLOAT32] = Field(default=0.0, ge=0, le=1e6)
    """The weight of the KL divergence from the reference model; 0: no reference model is loaded."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where the KL term goes."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """Per-token estimator (Schulman 2020); default: k3 in the loss, k1 in the reward. k1 in the loss has no expected
    gradient on-policy and is refused."""
    entropy_bonus: Annotated[float, ranges.FLOAT32] = Field(default=0.0, ge=0, le=1e6)
    """The weight of the mean token entropy, which is rewarded."""
    top_entropy_share: Annotated[float, ranges.SHARES] = Field(default=1.0, ge=1e-6, le=1)
    """Only this share of the tokens, those of highest entropy in the step, enters the policy term."""
    mask_truncated: bool = False
    """Truncated completions leave loss and denominators; they stay in their group's mean and spread."""
    importance: ImportanceSettings = Field(default_factory=ImportanceSettings)
    """Correction for the sampler's own numerics."""

    @model_validator(mode="before")
    @classmethod
    def _estimator_that_fits(cls, values: object) -> object:
        """In the reward only k1 follows the gradient of the divergence, so there it is the default."""
        if isinstance(values, Mapping) and values.get("kl_in") == "reward" and "kl_estimator" not in values:
            return {**values, "kl_estimator": "k1"}
        return values


class LoraSettings(Section):
    """Low-rank adapters (Hu et al. 2021, arXiv 2106.09685) are trained and the model's own weights stay. No dropout:
    the policy that is trained is the one that sampled."""

    rank: Annotated[int | None, ranges.RANKS] = Field(default=None, ge=1, le=2**16)
    """LoRA: adapters of this rank are trained in place of the model's own weights. Default: 16, once anything below
    `trainer.lora` is set."""
    alpha: Annotated[float | None, ranges.FLOAT32] = Field(default=None, ge=1e-6, le=1e6)
    """An adapter's product counts alpha / rank times. Default: 32."""
    targets: Literal["all-linear"] | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """What gets adapters: modules by the ends of their names, or `all-linear`, every linear layer but the head, which
    is the default. In a vision-language model only those of its text layers; see `vision`."""
    vision: bool = False
    """Whether `targets` are also looked for in the vision tower, and in what joins it to the text layers."""
    modules_to_save: tuple[str, ...] | None = None
    """Modules that are trained whole and kept beside the adapters, by the ends of their names: `[lm_head]`."""
    adapter: str | None = None
    """An adapter to go on with, in peft's layout: a folder or a hub id. It has its own rank, alpha, targets and
    modules_to_save."""
    merge: bool = True
    """`final/` is the whole model with the adapter merged in, beside `final/adapter/`; false: the adapter alone."""


DEFAULT_MICRO_BATCH_TOKENS = 4096
"""Of a trainer that is made without a plan."""


class TrainerSettings(Section):
    """The update."""

    use: str = "torch"
    """The trainer backend."""
    learning_rate: Annotated[float, ranges.LEARNING_RATES] = Field(default=1e-6, ge=1e-12, le=100)
    """The peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How it goes down to 0 after the warm-up; counted in updates."""
    warmup_updates: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=0, le=ranges.MOST)
    """Updates over which it rises from 0; excludes `warmup_share`."""
    warmup_share: float = Field(default=0.0, ge=0, le=1)
    """The same as a share of all updates."""
    weight_decay: Annotated[float, ranges.FLOAT32] = Field(default=0.0, ge=0, le=100)
    """AdamW's decoupled weight decay, on matrices only."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW's first decay rate."""
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    """AdamW's second decay rate."""
    adam_epsilon: Annotated[float, ranges.FLOAT32] = Field(default=1e-8, ge=1e-30, le=1)
    """AdamW's epsilon."""
    max_grad_norm: Annotated[float | None, ranges.FLOAT32] = Field(default=1.0, ge=1e-9, le=1e12)
    """The gradient's norm is clipped to this; null: not at all."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of weights and activations; bf16 keeps fp32 master weights."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: slower, less memory."""
    micro_batch_tokens: Annotated[int | None, ranges.TOKENS] = Field(default=None, ge=1, le=ranges.MOST)
    """The most tokens (padding included) of one forward pass; a longer sequence goes alone. Default: what the plan
    finds, by memory and, on a CPU, by speed."""
    shared_prefix: Literal["auto", "off", "require"] = "auto"
    """Forward each prompt once for the completions of its group. auto: where the model's numbers stay the same;
    require: an error where they do not."""
    num_iterations: Annotated[int, ranges.COUNTS] = Field(default=1, ge=1, le=10**6)
    """Passes over the completions of a step."""
    minibatches: Annotated[int, ranges.COUNTS] = Field(default=1, ge=1, le=10**6)
    """Optimiser updates of one pass; prompts are divided evenly."""
    lora: LoraSettings | None = None
    """Low-rank adapters; null: every weight is trained."""
    freeze: tuple[str, ...] = ()
    """Weights that stay as they are: modules by their names or the ends of them (`embed_tokens`, `layers.0`), patterns
    of weights' names (`*.layers.[0-3].*`), and `vision`, a vision-language model's tower."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the backend."""

    @property
    def token_budget(self) -> int:
        """`micro_batch_tokens`, or what it is where no plan has looked for it."""
        return self.micro_batch_tokens or DEFAULT_MICRO_BATCH_TOKENS


class EvaluationSettings(Section):
    """How held-out rows are answered."""

    every_steps: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """Evaluate every so many steps; default: before the first and after the last step only."""
    samples: Annotated[int, ranges.GROUPS] = Field(default=0, ge=0, le=10**6)
    """Completions per prompt, at the rollout's sampling settings, for mean reward and pass@k; 0: greedy only."""
    pass_at: tuple[Annotated[int, Field(ge=1, le=10**6, strict=True)], ...] = ()
    """The k of pass@k, each at most `samples`."""
    success: str | None = None
    """The reward whose 1.0 means "correct"; default: the rewards that say they verify."""


class RunSettings(Section):
    """The loop."""

    prompts_per_step: Annotated[int | None, ranges.GROUPS] = Field(default=None, ge=1, le=10**6)
    """Prompts of one step; default 8. Times `rollout.completions_per_prompt` it gives the completions of a step."""
    completions_per_step: Annotated[int | None, ranges.GROUPS] = Field(default=None, ge=1, le=10**6)
    """The same, counted in completions as other trainers do; a multiple of `rollout.completions_per_prompt`."""
    steps: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """How many steps; excludes `epochs`."""
    epochs: Annotated[float | None, ranges.COUNTS] = Field(default=None, ge=1e-9, le=1e6)
    """How many passes over the training rows; default 1 when `steps` is not given either."""
    seed: Annotated[int, ranges.SEEDS] = Field(default=0, ge=0, le=ranges.INT64_MAX)
    """Of data order and sampling."""
    directory: str | None = None
    """The run's folder; default: `runs/` and a name made of recipe and time."""
    save_steps: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """Write a checkpoint every so many steps."""
    save_minutes: Annotated[float | None, ranges.MINUTES] = Field(default=30.0, ge=1e-3, le=1e6)
    """Write one before so many minutes without one have passed; null: never. Default: 30, and null where `save_steps`
    is given. Without `save_total_limit` the newest two of these are kept, and the last good one."""
    save_total_limit: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """Keep only the newest so many checkpoints, and the last good one."""
    save_best: str | None = None
    """A metric of the evaluation, such as `eval/accuracy`: the model with the best value so far is kept in `best/`."""
    save_best_when: Literal["higher", "lower"] = "higher"
    """Which values of `save_best` are better."""
    report_to: tuple[str, ...] = ()
    """Trackers that show the run, such as `tensorboard`, `wandb`, `trackio`."""
    tracker_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of trackers, by name."""
    logging_steps: Annotated[int, ranges.COUNTS] = Field(default=1, ge=1, le=ranges.MOST)
    """Console and trackers show every so many steps the means since the last time; metrics.jsonl has every step."""
    show_completion_every_steps: Annotated[int, ranges.COUNTS] = Field(default=10, ge=0, le=ranges.MOST)
    """Show completions on the console and in trackers every so many steps; 0: never."""
    probe_prompts: Annotated[int, ranges.GROUPS] = Field(default=4, ge=0, le=10**6)
    """How many fixed prompts are answered again and again for the report, greedily and by sampling: of the evaluation
    rows, else of the training rows, spread evenly over them; 0: none."""
    probe_every_steps: Annotated[int | None, ranges.COUNTS] = Field(default=None, ge=1, le=ranges.MOST)
    """Answer them every so many steps, and before the first and after the last; default: 20 times in the run."""
    wait_limit_s: Annotated[float, ranges.SECONDS] = Field(default=1800.0, ge=1e-3, le=1e6)
    """With several processes: the run stops when one waits for another for longer than this."""
    zero_reward_patience_steps: Annotated[int, ranges.COUNTS] = Field(default=50, ge=0, le=ranges.MOST)
    """Stop when every total of so many steps in a row is 0; 0: never."""

    @model_validator(mode="before")
    @classmethod
    def _either_steps_or_minutes(cls, values: object) -> object:
        """Who counts in steps gets no other checkpoints unasked."""
        if isinstance(values, Mapping) and values.get("save_steps") is not None and "save_minutes" not in values:
            return {**values, "save_minutes": None}
        return values


class PluginSettings(Section):
    """Which plugins a run needs or leaves out."""

    require: tuple[str, ...] = ()
    """Distributions that must be there, with versions: `grpo-rewards-math>=0.1`."""
    disable: tuple[str, ...] = ()
    """Distributions that are not loaded."""


class Recipe(Section):
    """All settings of a run."""

    summary: str = ""
    """One line for listings."""
    model: Annotated[ModelSettings, _shorthand("path")]
    """The policy; plain text is its path."""
    dataset: Annotated[DataSettings, _shorthand("use")]
    """The data; plain text is the training dataset."""
    rewards: tuple[Annotated[RewardEntry, _shorthand("use")], ...] = Field(min_length=1)
    """The rewards; plain text is a reference."""
    scoring: ScoringSettings = Field(default_factory=ScoringSettings)
    """Totals and failures."""
    rollout: Annotated[RolloutSettings, _shorthand("use")] = Field(default_factory=RolloutSettings)
    """Generation."""
    advantage: AdvantageSettings = Field(default_factory=AdvantageSettings)
    """The baseline."""
    objective: ObjectiveSettings = Field(default_factory=ObjectiveSettings)
    """The loss."""
    trainer: Annotated[TrainerSettings, _shorthand("use")] = Field(default_factory=TrainerSettings)
    """The update."""
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings)
    """Held-out rows."""
    run: RunSettings = Field(default_factory=RunSettings)
    """The loop."""
    plugins: PluginSettings = Field(default_factory=PluginSettings)
    """Plugins needed and left out."""
