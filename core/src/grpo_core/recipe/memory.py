"""How much memory one process of a run needs, estimated before anything loads.

With P parameters, b bytes a value (4 in fp32, 2 in bf16), L layers, H hidden size, K key-value heads of size D, V
vocabulary, S sequences decoded at once, T tokens of the longest sequence (prompt and completion), M tokens of a
micro-batch (at least T), C tokens of a chunk of logits, and A parameters that are trained (P without those that are
frozen, or those of LoRA's adapters, which come on top of P):

    weights      P b       and A b of adapters
    masters      4 A       bf16 only: the fp32 weights that the optimiser changes
    gradients    4 A       fp32; in bf16 beside the 2 A of the backward pass
    optimiser    8 A       AdamW's two averages, in fp32
    reference    P b       when beta > 0; with LoRA A b when there is an adapter to go on with, else nothing
    KV cache     2 S T L K D b
    activations  17 M H L b; with gradient checkpointing M H L b + 17 M H b
    logits       2 C V b: a chunk, and its gradient; C at most the completions' tokens in a micro-batch

Of N ranks each has a share of the sequences. What a rank keeps of the rest is the trainer's to say: its options may
have a method `memory_shares`, which gives a share for each of these names, and for `gathered weights`, the P b that are
made whole for the rollout.

Activations are those of a transformer layer whose attention does not keep its scores: Korthikanti et al. 2022,
arXiv 2205.05198, §4.1, 34 bytes for each 2-byte value of hidden state. Weights, masters, optimiser and
reference stay; the KV cache lives during the rollout; gradients, activations and logits live during the update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_core.plugins.targets import load_target
from grpo_core.recipe.plan import LaunchPlan

__all__ = ["MemoryEstimate", "ModelShape", "chunk_tokens", "estimate_memory", "mebibytes", "shape_of", "update_tokens"]

CHUNK_BYTES = 2**28
"""Logits of a chunk, where the trainer's options name no `chunk_tokens`."""
LAYER_VALUES = 17
"""Values kept for the backward pass of one layer, as multiples of its hidden state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What of a model decides its memory."""

    parameters: int
    """Tied ones once."""
    layers: int
    """Transformer layers."""
    hidden: int
    """Size of a hidden state."""
    kv_heads: int
    """Heads of keys and values."""
    head_dim: int
    """Size of a head."""
    vocabulary: int
    """Logits of a token."""
    adapter: int | None = None
    """Parameters of LoRA's adapters, which alone are trained; None: there are none, and all are trained."""
    frozen: int = 0
    """Of the parameters those that `trainer.freeze` leaves out."""

    @property
    def trained(self) -> int:
        """How many parameters are trained."""
        return self.parameters - self.frozen if self.adapter is None else self.adapter


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes."""

    parts: dict[str, int]
    """By what they are for; 0 for what the run does not have."""
    peak: int
    """The larger of what a rollout and what an update needs at once."""
    update_peak: int
    """What an update needs at once: all that there is where the rollout is elsewhere."""


def shape_of(config: object, parameters: int, adapter: int | None = None, frozen: int = 0) -> ModelShape | None:
    """The shape that a Hugging Face config describes; None when it has other names for it."""
    text_config = getattr(config, "get_text_config", None)
    config = text_config() if callable(text_config) else config
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    layers, hidden, heads, vocabulary = (getattr(config, name, None) for name in names)
    if not (isinstance(layers, int) and isinstance(hidden, int)):
        return None
    if not (isinstance(heads, int) and isinstance(vocabulary, int)):
        return None
    return ModelShape(
        parameters=parameters,
        layers=layers,
        hidden=hidden,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or hidden // heads,
        vocabulary=vocabulary,
        adapter=adapter,
        frozen=frozen,
    )


def estimate_memory(plan: LaunchPlan, shape: ModelShape, *, longest_prompt: int, ranks: int = 1) -> MemoryEstimate:
    """Estimate one of `ranks` processes whose rollout reads the trainer's own weights; `longest_prompt` in tokens."""
    completions = -(-plan.batch.completions_per_step // ranks)
    lasting = _lasting(plan, shape)
    rollout = {"KV cache": _kv_cache(plan, shape, longest_prompt, completions)}
    update = _update(plan, shape, longest_prompt, completions)
    shares = _shares(plan, ranks)
    if "gathered weights" in shares:
        rollout["gathered weights"] = lasting["weights"]
    lasting, rollout, update = (
        {name: round(size * shares.get(name, 1.0)) for name, size in parts.items()}
        for parts in (lasting, rollout, update)
    )
    return MemoryEstimate(
        parts={**lasting, **rollout, **update},
        peak=sum(lasting.values()) + max(sum(rollout.values()), sum(update.values())),
        update_peak=sum(lasting.values()) + sum(update.values()),
    )


def update_tokens(plan: LaunchPlan, longest_prompt: int, completions: int) -> int:
    """The most tokens that are forwarded for so many completions."""
    own = completions * plan.recipe.rollout.max_completion_tokens
    if plan.recipe.trainer.shared_prefix == "off":
        return completions * longest_prompt + own
    return -(-completions // plan.batch.completions_per_prompt) * longest_prompt + own


def chunk_tokens(vocabulary: int, value_bytes: int) -> int:
    """How many tokens have logits at once, where nobody says."""
    return max(1, CHUNK_BYTES // (vocabulary * value_bytes))


def mebibytes(size: int) -> str:
    """Bytes for people: `512 MiB`, `27.6 GiB`."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(1, round(size / 2**20))} MiB"


def _shares(plan: LaunchPlan, ranks: int) -> Mapping[str, float]:
    """What each of several ranks keeps of each kind of memory, by the trainer's options; all of what is not named."""
    if plan.trainer.options_model is None:
        return {}
    model: Any = load_target(plan.trainer.options_model)
    tell = getattr(model(**plan.trainer.options), "memory_shares", None)
    shares: Mapping[str, float] = tell(ranks, _value_bytes(plan)) if tell else {}
    return shares


def _value_bytes(plan: LaunchPlan) -> int:
    return 2 if plan.recipe.trainer.precision == "bf16" else 4


def _lasting(plan: LaunchPlan, shape: ModelShape) -> dict[str, int]:
    is_bf16 = plan.recipe.trainer.precision == "bf16"
    return {
        "weights": (shape.parameters + (shape.adapter or 0)) * _value_bytes(plan),
        "masters": 4 * shape.trained if is_bf16 else 0,
        "optimiser": 8 * shape.trained,
        "reference": _reference(plan, shape),
    }


def _reference(plan: LaunchPlan, shape: ModelShape) -> int:
    lora = plan.recipe.trainer.lora
    if plan.recipe.objective.beta == 0 or (lora is not None and lora.adapter is None):
        return 0
    return (shape.parameters if lora is None else shape.trained) * _value_bytes(plan)


def _kv_cache(plan: LaunchPlan, shape: ModelShape, longest_prompt: int, completions: int) -> int:
    at_once: int = plan.rollout.options.get("max_sequences", completions)
    sequences = min(completions, max(at_once, plan.batch.completions_per_prompt))
    tokens = sequences * (longest_prompt + plan.recipe.rollout.max_completion_tokens)
    return 2 * tokens * shape.layers * shape.kv_heads * shape.head_dim * _value_bytes(plan)


def _update(plan: LaunchPlan, shape: ModelShape, longest_prompt: int, completions: int) -> dict[str, int]:
    trainer = plan.recipe.trainer
    longest = longest_prompt + plan.recipe.rollout.max_completion_tokens
    tokens = max(longest, min(trainer.token_budget, update_tokens(plan, longest_prompt, completions)))
    value_bytes = _value_bytes(plan)
    chunk = plan.trainer.options.get("chunk_tokens") or chunk_tokens(shape.vocabulary, value_bytes)
    own = plan.recipe.rollout.max_completion_tokens
    if trainer.shared_prefix != "off":
        own *= plan.batch.completions_per_prompt
    picked = -(-tokens * own // (longest_prompt + own))
    layer = tokens * shape.hidden * _value_bytes(plan)
    kept = LAYER_VALUES * layer * shape.layers
    if trainer.gradient_checkpointing:
        kept = layer * shape.layers + LAYER_VALUES * layer
    return {
        "gradients": 4 * shape.trained,  # summed in fp32 as they come
        "activations": kept,
        "logits": 2 * value_bytes * min(chunk, picked) * shape.vocabulary,
    }
