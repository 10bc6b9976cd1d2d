from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.recipe.memory import ModelShape, estimate_memory, mebibytes, shape_of
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of

_SHAPE = ModelShape(parameters=1000, layers=2, hidden=8, kv_heads=1, head_dim=4, vocabulary=50)
_ROLLOUT = {"completions_per_prompt": 2, "max_completion_tokens": 6}
_RUN = {"prompts_per_step": 3}


def _plan(**trainer: Any) -> LaunchPlan:
    return resolve(recipe_of(rollout=_ROLLOUT, run=_RUN, trainer=trainer), {}, host=fake_host())


def _with_options(plan: LaunchPlan, part: str, options: dict[str, Any]) -> LaunchPlan:
    return plan.model_copy(update={part: getattr(plan, part).model_copy(update={"options": options})})


def test_an_fp32_run_is_hand_worked() -> None:
    estimate = estimate_memory(_plan(micro_batch_tokens=30), _SHAPE, longest_prompt=4)
    assert estimate.parts == {
        "weights": 4000,
        "masters": 0,
        "optimiser": 8000,
        "reference": 0,
        "KV cache": 2 * (6 * 10) * 2 * 1 * 4 * 4,
        "gradients": 4000,
        "activations": 17 * 30 * 8 * 2 * 4,
        "logits": 2 * 4 * 23 * 50,  # of 16 tokens of a group 12 are the completions', of 30 tokens therefore 22.5
    }
    assert estimate.peak == 12000 + (4000 + 32640 + 9200)


def test_bf16_has_masters_and_halves_weights_and_activations() -> None:
    parts = estimate_memory(_plan(micro_batch_tokens=30, precision="bf16"), _SHAPE, longest_prompt=4).parts
    assert (parts["weights"], parts["masters"], parts["optimiser"]) == (2000, 4000, 8000)
    assert parts["gradients"] == 4000
    assert parts["activations"] == 17 * 30 * 8 * 2 * 2
    assert parts["KV cache"] == 2 * 60 * 2 * 1 * 4 * 2


def test_a_kl_term_adds_a_reference_model() -> None:
    plan = resolve(recipe_of(objective={"beta": 0.1}), {}, host=fake_host())
    assert estimate_memory(plan, _SHAPE, longest_prompt=4).parts["reference"] == 4000


def test_checkpointing_keeps_one_layer_and_the_borders_of_the_others() -> None:
    plan = _plan(micro_batch_tokens=30, gradient_checkpointing=True)
    assert estimate_memory(plan, _SHAPE, longest_prompt=4).parts["activations"] == 30 * 8 * 4 * (2 + 17)


def test_a_micro_batch_holds_at_least_the_longest_sequence_and_at_most_all_of_them() -> None:
    small = estimate_memory(_plan(micro_batch_tokens=1), _SHAPE, longest_prompt=4).parts["activations"]
    large = estimate_memory(_plan(micro_batch_tokens=10**9), _SHAPE, longest_prompt=4).parts["activations"]
    assert (small, large) == (17 * 10 * 8 * 2 * 4, 17 * (3 * 4 + 6 * 6) * 8 * 2 * 4)
    repeated = _plan(micro_batch_tokens=10**9, shared_prefix="off")
    assert estimate_memory(repeated, _SHAPE, longest_prompt=4).parts["activations"] == 17 * 60 * 8 * 2 * 4


def test_the_options_of_the_backends_bound_cache_and_logits() -> None:
    plan = _with_options(_with_options(_plan(), "rollout", {"max_sequences": 4}), "trainer", {"chunk_tokens": 7})
    parts = estimate_memory(plan, _SHAPE, longest_prompt=4).parts
    assert parts["KV cache"] == 2 * (4 * 10) * 2 * 1 * 4 * 4
    assert parts["logits"] == 2 * 4 * 7 * 50


def test_a_group_is_decoded_whole() -> None:
    plan = _with_options(_plan(), "rollout", {"max_sequences": 1})
    assert estimate_memory(plan, _SHAPE, longest_prompt=4).parts["KV cache"] == 2 * (2 * 10) * 2 * 1 * 4 * 4


def _with_adapter(parameters: int) -> ModelShape:
    return ModelShape(parameters=1000, layers=2, hidden=8, kv_heads=1, head_dim=4, vocabulary=50, adapter=parameters)


def test_of_lora_only_the_adapter_has_gradients_masters_and_averages() -> None:
    plan = _plan(precision="bf16", lora={"rank": 2})
    parts = estimate_memory(plan, _with_adapter(100), longest_prompt=4).parts
    assert (parts["weights"], parts["masters"], parts["optimiser"]) == (2 * 1100, 400, 800)
    assert parts["gradients"] == 400


@pytest.mark.parametrize(("lora", "bytes_"), [({"rank": 2}, 0), ({"adapter": "./a"}, 400)])
def test_the_reference_of_lora_is_at_most_another_adapter(lora: dict[str, Any], bytes_: int) -> None:
    plan = resolve(recipe_of(objective={"beta": 0.1}, trainer={"lora": lora}), {}, host=fake_host())
    assert estimate_memory(plan, _with_adapter(100), longest_prompt=4).parts["reference"] == bytes_


def test_a_large_cache_sets_the_peak() -> None:
    estimate = estimate_memory(_plan(micro_batch_tokens=1), _SHAPE, longest_prompt=10**6)
    wide = estimate_memory(_plan(micro_batch_tokens=1), _SHAPE, longest_prompt=4)
    assert estimate.peak >= 12000 + estimate.parts["KV cache"]
    assert wide.peak == 12000 + 4000 + wide.parts["activations"] + wide.parts["logits"]


def _config(**values: Any) -> SimpleNamespace:
    names = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, "vocab_size": 50}
    return SimpleNamespace(**{**names, **values})


def test_the_shape_is_read_from_a_config() -> None:
    shape = shape_of(_config(num_key_value_heads=1, head_dim=4), 1000)
    assert shape == _SHAPE


def test_heads_default_to_those_of_attention() -> None:
    shape = shape_of(_config(), 1)
    assert shape is not None
    assert (shape.kv_heads, shape.head_dim) == (4, 2)


def test_the_text_part_of_a_larger_model_counts() -> None:
    outer = SimpleNamespace(get_text_config=lambda: _config(hidden_size=16))
    shape = shape_of(outer, 1)
    assert shape is not None
    assert shape.hidden == 16


@pytest.mark.parametrize("missing", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"])
def test_a_config_with_other_names_has_no_shape(missing: str) -> None:
    assert shape_of(_config(**{missing: None}), 1) is None


def test_each_of_several_processes_has_a_share_of_the_completions() -> None:
    plan = _plan(micro_batch_tokens=10**9, shared_prefix="off")
    alone = estimate_memory(plan, _SHAPE, longest_prompt=4).parts
    one_of_two = estimate_memory(plan, _SHAPE, longest_prompt=4, ranks=2).parts
    shared = {"KV cache", "activations", "logits"}
    assert {name: 2 * one_of_two[name] for name in shared} == {name: alone[name] for name in shared}
    assert all(one_of_two[name] == alone[name] for name in alone.keys() - shared)


def test_shards_keep_an_nth_of_what_lasts_and_gather_the_weights_for_the_rollout() -> None:
    plan = _with_options(_plan(precision="bf16"), "trainer", {"sharding": "full"})
    trainer = plan.trainer.model_copy(update={"options_model": "grpo_core.trainer.options:TorchTrainerOptions"})
    plan = plan.model_copy(update={"trainer": trainer})
    parts = estimate_memory(plan, _SHAPE, longest_prompt=4, ranks=4).parts
    assert (parts["weights"], parts["masters"], parts["optimiser"]) == (1000, 0, 2000)
    assert (parts["gradients"], parts["gathered weights"]) == (1000, 2000)
    assert "gathered weights" not in estimate_memory(plan, _SHAPE, longest_prompt=4).parts


@pytest.mark.parametrize(("size", "text"), [(0, "1 MiB"), (3 * 2**20, "3 MiB"), (5 * 2**29, "2.5 GiB")])
def test_sizes_are_shown_for_people(size: int, text: str) -> None:
    assert mebibytes(size) == text
