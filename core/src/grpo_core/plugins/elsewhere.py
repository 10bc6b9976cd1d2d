"""Which of this project's packages registers a well-known name: what to install when it is not there.

Core imports none of them and works without; this is text for a message only.
"""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.plugins.specs import Kind

__all__ = ["package_of"]

_NAMES: Mapping[str, Mapping[Kind, tuple[str, ...]]] = {
    "grpo-rewards-math": {
        "reward": (
            *("math_reward", "math", "math_accuracy", "accuracy", "cosine", "cosine_reward"),
            *("countdown_reward", "countdown", "external_countdown"),
        ),
        "dataset": ("countdown", "math_basics"),
        "recipe": ("countdown-tiny", "countdown-smollm2", "countdown-qwen2.5-3b"),
    },
    "grpo-rewards-code": {
        "reward": ("code_reward", "code"),
        "dataset": ("code", "code_basics"),
        "recipe": ("multitask-math-code",),
    },
    "grpo-datasets-vision": {
        "dataset": ("clevr_count", "geoqa", "open_r1_multimodal"),
        "recipe": ("clevr-count", "geoqa", "open-r1-multimodal", "clevr-count-tiny"),
    },
    "grpo-rollout-vllm": {"rollout": ("vllm",)},
    "grpo-trainer-deepspeed": {"trainer": ("deepspeed",)},
    "grpo-trackers": {"tracker": ("tensorboard", "wandb", "trackio")},
}


def package_of(kind: Kind, name: str) -> str | None:
    """The package to install for a component, by its name, alias or `dist/name`; None when none is known."""
    owner, _, short = name.rpartition("/")
    for package, kinds in _NAMES.items():
        if short in kinds.get(kind, ()) and owner in ("", package):
            return package
    return None
