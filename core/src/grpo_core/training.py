"""What authors of trainer backends import beside `grpo_core.api` and `grpo_core.backends`: the parts of a trainer.

A trainer backend owns the weights: where they are, how gradients are summed, who steps. Everything else of an update
is here, and the same for all of them: loading, micro-batches, the policy as one module, losses with the denominators
of the update, metrics, learning rates, names of weights. docs/several-gpus.md says how they fit together.

It imports torch and transformers: a plugin's entry module leaves it alone, the module behind its target needs it.
"""

from grpo_core.model.load import load_model, without_progress_bars
from grpo_core.model.lora import add_adapter, as_reference
from grpo_core.model.lora_weights import ADAPTER_FOLDER, export, merged_weights, write_adapter
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.trainer.images import ImageReader
from grpo_core.trainer.layout import ForwardInputs
from grpo_core.trainer.loading import has_reference_model, load_policy, policy_or_reference
from grpo_core.trainer.microbatch import collate
from grpo_core.trainer.passes import (
    Packed,
    Passed,
    backward_pass,
    pack_for_loss,
    require_finite,
    token_stats,
    update_report,
)
from grpo_core.trainer.place import DTYPES, checkpoint_layers, choose_device, named_tensors
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.rows import DUMMY, Row
from grpo_core.trainer.schedule import learning_rate
from grpo_core.trainer.shared_prefix import SharedPrefix
from grpo_core.trainer.spread import Spread

__all__ = [
    "ADAPTER_FOLDER",
    "DTYPES",
    "DUMMY",
    "ForwardInputs",
    "ImageReader",
    "Packed",
    "Passed",
    "PolicyModule",
    "Row",
    "SharedPrefix",
    "Spread",
    "add_adapter",
    "as_reference",
    "backward_pass",
    "checkpoint_layers",
    "choose_device",
    "collate",
    "export",
    "has_reference_model",
    "learning_rate",
    "load_model",
    "load_policy",
    "load_tokenizer",
    "merged_weights",
    "named_tensors",
    "pack_for_loss",
    "policy_or_reference",
    "require_finite",
    "token_stats",
    "update_report",
    "without_progress_bars",
    "write_adapter",
]
