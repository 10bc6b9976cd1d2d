"""What DeepSpeed is told, and which JSONs are refused; no DeepSpeed is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_core.backends import Recipe, TrainerSettings
from grpo_core.errors import RecipeError
from grpo_trainer_deepspeed.config import deepspeed_config, reference_config
from grpo_trainer_deepspeed.options import DeepSpeedOptions

USUAL: dict[str, Any] = {
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "reduce_bucket_size": "auto",
        "stage3_max_live_parameters": 1e9,
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_num_steps": "auto"}},
    "wall_clock_breakdown": False,
}
"""As files for Hugging Face's trainers are written."""


def made(config: dict[str, Any] | None = None, *, trainer: dict[str, Any] | None = None, **options: Any) -> Any:
    settings = TrainerSettings(**(trainer or {}))
    return deepspeed_config(DeepSpeedOptions(config=config, **options), settings)


def refusal(config: dict[str, Any], **more: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        made(config, **more)
    return caught.value.message


def test_without_a_json_the_recipe_decides_everything() -> None:
    config = made(stage=2, trainer={"max_grad_norm": 0.5, "precision": "bf16"})
    assert config["zero_optimization"] == {"stage": 2}
    assert config["gradient_clipping"] == 0.5
    assert config["bf16"]["enabled"] is True
    assert config["fp16"]["enabled"] is False
    assert config["data_types"] == {"grad_accum_dtype": "fp32"}
    assert config["communication_data_type"] == "fp32"


def test_null_clips_nothing_and_stage_0_leaves_clipping_to_the_trainer() -> None:
    assert made(trainer={"max_grad_norm": None})["gradient_clipping"] == 0.0
    assert made(stage=0)["gradient_clipping"] == 0.0


def test_the_usual_json_is_taken_and_auto_is_left_to_the_recipe() -> None:
    config = made(USUAL, trainer={"precision": "bf16"})
    assert config["zero_optimization"] == {"stage": 3, "overlap_comm": True, "stage3_max_live_parameters": 1e9}
    assert config["bf16"]["enabled"] is True
    assert config["wall_clock_breakdown"] is False
    assert "'auto'" not in str(config)
    assert "optimizer" not in config
    assert "scheduler" not in config
    assert "train_batch_size" not in config


def test_what_repeats_the_recipe_is_no_contradiction() -> None:
    params = {"lr": 1e-6, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}
    repeated = {"gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": params}, "bf16": {"enabled": False}}
    assert made(repeated)["gradient_clipping"] == 1.0


def test_a_json_may_choose_in_which_type_gradients_travel_and_who_prints() -> None:
    config = made({"communication_data_type": "bf16", "steps_per_print": 5})
    assert (config["communication_data_type"], config["steps_per_print"]) == ("bf16", 5)


@pytest.mark.parametrize("key", ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"])
def test_a_batch_size_in_the_json_is_refused_with_what_sets_it(key: str) -> None:
    message = refusal({key: 16})
    assert f"trainer.options.config.{key}: it is 16, but the batch is run.prompts_per_step × rollout" in message
    assert "micro-batches are trainer.micro_batch_tokens" in message


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"gradient_clipping": 0.3}, "gradient_clipping: it is 0.3, and trainer.max_grad_norm says 1.0"),
        ({"bf16": {"enabled": True}}, "bf16.enabled: it is True, and trainer.precision says 'fp32'"),
        ({"fp16": {"enabled": True}}, "fp16.enabled: it is True, and trainer.options.fp16 says False"),
        ({"optimizer": {"type": "Lion"}}, "optimizer.type: it is 'Lion', but every trainer uses AdamW"),
        (
            {"optimizer": {"type": "AdamW", "params": {"lr": 0.1}}},
            "optimizer.params.lr: it is 0.1, and trainer.learning_rate says 1e-06",
        ),
        (
            {"optimizer": {"type": "AdamW", "params": {"betas": [0.8, 0.9]}}},
            "optimizer.params.betas: it is [0.8, 0.9], and trainer.adam_beta1, adam_beta2 says [0.9, 0.999]",
        ),
        (
            {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}},
            "scheduler: learning rates are trainer.schedule and trainer.warmup_updates",
        ),
        ({"scheduler": "WarmupLR"}, "scheduler: learning rates are"),
        ({"bf16": True}, """bf16: it is True, and DeepSpeed has a section there: {"enabled": …}"""),
        ({"zero_optimization": 2}, "zero_optimization: it is 2, and DeepSpeed has a section there"),
        ({"sheduler": {}}, "sheduler: DeepSpeed has no such key; did you mean 'scheduler'?"),
        ({"gradient_cliping": 0.3}, "gradient_cliping: DeepSpeed has no such key; did you mean 'gradient_clipping'?"),
    ],
)
def test_what_contradicts_the_recipe_is_refused_with_both_values(config: dict[str, Any], said: str) -> None:
    assert f"trainer.options.config.{said}" in refusal(config)


def test_a_place_of_offload_that_is_no_section_is_refused_too() -> None:
    message = refusal({"zero_optimization": {"offload_optimizer": True}}, offload_optimizer=True)
    assert "zero_optimization.offload_optimizer: it is True, and DeepSpeed has a section there" in message


def test_a_section_may_be_left_to_the_recipe_as_a_whole() -> None:
    assert made({"bf16": "auto", "zero_optimization": "auto"})["zero_optimization"] == {"stage": 3}


def test_another_stage_than_the_option_says_is_refused() -> None:
    message = refusal({"zero_optimization": {"stage": 2}}, stage=3)
    assert "zero_optimization.stage: it is 2, and trainer.options.stage says 3" in message


def test_offload_to_another_place_than_the_option_says_is_refused() -> None:
    given = {"zero_optimization": {"offload_optimizer": {"device": "nvme"}}}
    message = refusal(given, offload_optimizer=True)
    assert "offload_optimizer.device: it is 'nvme', and trainer.options.offload_optimizer says 'cpu'" in message
    assert made(given)["zero_optimization"]["offload_optimizer"] == {"device": "nvme"}


def test_sums_of_gradients_are_fp32_whatever_a_json_says() -> None:
    message = refusal({"data_types": {"grad_accum_dtype": "bf16"}}, trainer={"precision": "bf16"})
    assert "data_types.grad_accum_dtype: it is 'bf16', and this trainer says 'fp32'" in message


def test_in_stage_0_a_json_may_say_the_same_of_sums() -> None:
    config = made({"data_types": {"grad_accum_dtype": "fp32"}}, stage=0, trainer={"precision": "bf16"})
    assert config["data_types"] == {"grad_accum_dtype": "bf16"}  # what DeepSpeed takes there; the trainer sums


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("torch_autocast", "enabled"),
        ("fp16", "auto_cast"),
        ("fp16", "fp16_master_weights_and_grads"),
        ("bf16", "bf16_master_weights_and_grads"),
        ("bf16", "bf16_optimizer_states"),
    ],
)
def test_other_precisions_than_the_recipes_are_contradictions(section: str, key: str) -> None:
    assert f"{section}.{key}: it is True, and this trainer says False" in refusal({section: {key: True}})


def test_in_stage_0_a_json_may_repeat_the_norm_that_the_trainer_clips_to() -> None:
    assert made({"gradient_clipping": 1.0}, stage=0)["gradient_clipping"] == 0.0


def test_all_contradictions_are_told_together() -> None:
    message = refusal({"train_batch_size": 8, "gradient_clipping": 0.3, "optimizer": {"type": "Lion"}})
    assert "the recipe has 3 problems" in message


@pytest.mark.parametrize(
    ("more", "kind"), [({}, "fp32"), ({"fp16": True}, "fp16"), ({"trainer": {"precision": "bf16"}}, "bf16")]
)
def test_in_stage_0_deepspeed_is_told_the_type_of_the_weights_and_the_trainer_sums_in_fp32(
    more: dict[str, Any], kind: str
) -> None:
    assert made(stage=0, **more)["data_types"] == {"grad_accum_dtype": kind}
    assert made(stage=1, **more)["data_types"] == {"grad_accum_dtype": "fp32"}


def test_fp16_and_bf16_exclude_each_other() -> None:
    message = refusal({}, fp16=True, trainer={"precision": "bf16"})
    assert "trainer.options.fp16: weights cannot be fp16 and bf16" in message


def test_offload_reaches_deepspeed() -> None:
    zero = made(offload_optimizer=True, offload_parameters=True)["zero_optimization"]
    assert zero == {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}


def test_details_of_offload_in_the_json_are_kept() -> None:
    given = {"zero_optimization": {"offload_optimizer": {"pin_memory": True}}}
    zero = made(given, offload_optimizer=True)["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "cpu", "pin_memory": True}


def test_a_reference_model_has_no_optimiser_to_offload() -> None:
    config = made(offload_optimizer=True, offload_parameters=True)
    assert reference_config(config)["zero_optimization"] == {"stage": 3, "offload_param": {"device": "cpu"}}
    assert "offload_optimizer" in config["zero_optimization"]


def test_contradictions_are_found_when_the_run_is_planned() -> None:
    settings = {"use": "deepspeed", "max_grad_norm": 0.5}
    recipe = Recipe.model_validate({"model": "m", "dataset": "d", "rewards": ["r"], "trainer": settings})
    options = DeepSpeedOptions(config={"gradient_clipping": 1.0})
    assert list(options.contradictions(recipe)) == [
        (
            "trainer.options.config.gradient_clipping",
            'it is 1.0, and trainer.max_grad_norm says 0.5; make them equal, or write "auto"',
        )
    ]
    assert list(DeepSpeedOptions().contradictions(recipe)) == []
