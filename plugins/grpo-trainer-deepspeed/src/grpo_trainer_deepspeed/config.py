"""The configuration that DeepSpeed is given: what the recipe decides, and beside it what the user's JSON says.

A JSON may repeat what the recipe says, or leave it to the recipe by "auto", as is usual where Hugging Face's trainers
read it. What contradicts the recipe is an error: one of the two would have no effect, without a word.

It imports no DeepSpeed, and no options: what it must know of them is in `Choices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

from grpo_core.backends import TrainerSettings
from grpo_core.errors import Problem, RecipeError

__all__ = ["Choices", "deepspeed_config", "problems", "reference_config"]

AUTO = "auto"
BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
SETTINGS: dict[tuple[str, ...], str] = {
    ("gradient_clipping",): "trainer.max_grad_norm",
    ("bf16", "enabled"): "trainer.precision",
    ("fp16", "enabled"): "trainer.options.fp16",
    ("zero_optimization", "stage"): "trainer.options.stage",
    ("zero_optimization", "offload_optimizer", "device"): "trainer.options.offload_optimizer",
    ("zero_optimization", "offload_param", "device"): "trainer.options.offload_parameters",
}
"""What of the recipe decides a key."""
READ = (*BATCH_KEYS, "bf16", "fp16", "gradient_clipping", "optimizer", "scheduler", "zero_optimization")
"""Keys at the top that a misspelt one may have been meant for: DeepSpeed passes over what it does not know."""
NEVER = 10**9
"""Steps between lines that DeepSpeed would print beside the run's own console."""
SEVERAL = 2
"""DeepSpeed keeps its gradients ready for more than one micro-batch when it is told a number above 1. Where an update
really ends is said by hand, and nothing is divided by it."""


class Choices(Protocol):
    """What of `DeepSpeedOptions` decides the configuration."""

    @property
    def zero_stage(self) -> int:
        """The stage that is meant."""
        ...

    @property
    def fp16(self) -> bool:
        """Weights and activations in fp16."""
        ...

    @property
    def offload_optimizer(self) -> bool:
        """AdamW's numbers in main memory."""
        ...

    @property
    def offload_parameters(self) -> bool:
        """Weights in main memory."""
        ...

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The user's JSON."""
        ...


def deepspeed_config(options: Choices, settings: TrainerSettings) -> dict[str, Any]:
    """The whole configuration; raises `RecipeError` with every contradiction between recipe and JSON."""
    found = problems(options, settings)
    if found:
        raise RecipeError(found)
    given = options.config or {}
    chosen = {key: value for key, value in given.items() if key not in ("optimizer", "scheduler")}
    return _merged(_defaults(), _merged(_without_auto(chosen), _ours(options, settings)))


def problems(options: Choices, settings: TrainerSettings) -> list[Problem]:
    """Every contradiction between options, JSON and recipe."""
    return [*_impossible(options, settings), *_contradictions(options.config or {}, options, settings)]


def reference_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a reference model in stage 3, which has no optimiser and is never trained."""
    kept = {key: value for key, value in config.items() if key != "zero_optimization"}
    zero = {key: value for key, value in config["zero_optimization"].items() if key != "offload_optimizer"}
    return {**kept, "zero_optimization": zero}


def _defaults() -> dict[str, Any]:
    """What a JSON may have otherwise."""
    return {
        "steps_per_print": NEVER,
        # Gradients are summed over ranks in fp32, whatever the weights are in.
        "communication_data_type": "fp32",
    }


def _ours(options: Choices, settings: TrainerSettings) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": options.zero_stage}
    if options.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu"}
    if options.offload_parameters:
        zero["offload_param"] = {"device": "cpu"}
    kind = "fp16" if options.fp16 else settings.precision
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": SEVERAL,
        # Without ZeRO the norm is taken, and the gradient clipped, by the trainer.
        "gradient_clipping": (settings.max_grad_norm or 0.0) if options.zero_stage else 0.0,
        "bf16": {
            "enabled": settings.precision == "bf16",
            "check_grad_overflow": True,
            "bf16_master_weights_and_grads": False,
            "bf16_optimizer_states": False,
        },
        "fp16": {"enabled": options.fp16, "auto_cast": False, "fp16_master_weights_and_grads": False},
        "torch_autocast": {"enabled": False},
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        # Without ZeRO it takes none but that of the weights, and the trainer sees to fp32.
        "data_types": {"grad_accum_dtype": "fp32" if options.zero_stage else kind},
    }


def _impossible(options: Choices, settings: TrainerSettings) -> Iterator[Problem]:
    if options.fp16 and settings.precision == "bf16":
        message = "weights cannot be fp16 and bf16; set trainer.precision to fp32, or fp16 to false"
        yield Problem(path="trainer.options.fp16", message=message)


def _contradictions(given: Mapping[str, Any], options: Choices, settings: TrainerSettings) -> Iterator[Problem]:
    for key in BATCH_KEYS:
        if given.get(key, AUTO) != AUTO:
            yield _problem(
                key,
                f"it is {given[key]!r}, but the batch is run.prompts_per_step × rollout.completions_per_prompt, and "
                'micro-batches are trainer.micro_batch_tokens; remove it, or write "auto"',
            )
    ours = _ours(options, settings) | {
        # What is so, whatever DeepSpeed is told in stage 0.
        "gradient_clipping": settings.max_grad_norm or 0.0,
        "data_types": {"grad_accum_dtype": "fp32"},
    }
    yield from _no_sections(given, ours)
    yield from _misspelt(given)
    for path, value in _leaves(ours):
        if path[0] not in BATCH_KEYS:
            said = settings.precision if path == ("bf16", "enabled") else None
            yield from _unless_equal(given, path, value, SETTINGS.get(path, "this trainer"), said=said)
    yield from _optimizer(given, settings)
    if any(value != AUTO for value in _parameters(given.get("scheduler")).values()):
        yield _problem("scheduler", "learning rates are trainer.schedule and trainer.warmup_updates; remove it")


def _optimizer(given: Mapping[str, Any], settings: TrainerSettings) -> Iterator[Problem]:
    optimizer = given.get("optimizer")
    if optimizer is None:
        return
    kind = optimizer.get("type") if isinstance(optimizer, Mapping) else optimizer
    if kind not in (AUTO, "AdamW"):
        yield _problem("optimizer.type", f"it is {kind!r}, but every trainer uses AdamW; remove it")
    wanted: dict[str, tuple[object, str]] = {
        "lr": (settings.learning_rate, "trainer.learning_rate"),
        "betas": ([settings.adam_beta1, settings.adam_beta2], "trainer.adam_beta1, adam_beta2"),
        "eps": (settings.adam_epsilon, "trainer.adam_epsilon"),
        "weight_decay": (settings.weight_decay, "trainer.weight_decay"),
    }
    for key, (ours, setting) in wanted.items():
        yield from _unless_equal(given, ("optimizer", "params", key), ours, setting)


def _unless_equal(
    given: Mapping[str, Any], path: tuple[str, ...], ours: object, setting: str, *, said: object = None
) -> Iterator[Problem]:
    """`said` is what the setting holds, where that is not the value itself."""
    value: Any = given
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return
        value = value[key]
    if value not in (AUTO, ours):
        held = ours if said is None else said
        message = f'it is {value!r}, and {setting} says {held!r}; make them equal, or write "auto"'
        yield _problem(".".join(path), message)


def _no_sections(given: Mapping[str, Any], ours: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Values where DeepSpeed has a section, which ours would take the place of without a word."""
    for key, section in ours.items():
        if not isinstance(section, Mapping) or key not in given or given[key] == AUTO:
            continue
        if isinstance(given[key], Mapping):
            yield from _no_sections(given[key], section, (*path, key))
        else:
            example = f'{{"{next(iter(section))}": …}}'
            yield _problem(
                ".".join((*path, key)), f"it is {given[key]!r}, and DeepSpeed has a section there: {example}"
            )


def _misspelt(given: Mapping[str, Any]) -> Iterator[Problem]:
    for key in given:
        meant = get_close_matches(key, READ, n=1, cutoff=0.85)
        if meant and key not in READ:
            yield _problem(key, f"DeepSpeed has no such key; did you mean '{meant[0]}'?")


def _problem(key: str, message: str) -> Problem:
    return Problem(path=f"trainer.options.config.{key}", message=message)


def _leaves(section: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every value that is no mapping, with the keys that lead to it."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _parameters(section: object) -> Mapping[str, Any]:
    """What a section of a JSON sets; one that is no mapping sets itself."""
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        return {"": section}
    return section["params"] if isinstance(section.get("params"), Mapping) else section


def _without_auto(value: Any) -> Any:
    """Without the keys that are left to us, all the way down; DeepSpeed knows no "auto"."""
    if not isinstance(value, Mapping):
        return value
    return {key: _without_auto(inner) for key, inner in value.items() if inner != AUTO}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, key by key; `above` wins."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged
