"""What an update costs that encodes an image once a group, beside one that encodes it for each completion.

    PYTHONPATH=. python benchmarks/vision.py --turns 3

A random Qwen2-VL makes updates with the `torch` trainer on the CPU: one group of G completions of 64 tokens to one
prompt with one image; and, as the plain path, the same completions as G groups of one. Turns of both are interleaved.
Prints medians: CPU seconds of an update, and the peak of what autograd keeps for the backward pass, without weights.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from grpo_core.trainer.backend import TorchTrainer
from grpo_core.types import TrainBatch, TrainMember
from tests.core.trainer.batches import make_trainer
from tests.core.trainer.vl_batches import make_vl_batch
from tests.vl_models import make_vl_folder

TOKEN_SIDE = 28
"""Pixels of a visual token's side."""
HEAD = 32
"""Size of a head of attention."""
COMPLETION_TOKENS = 64


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--width", type=int, default=256, help="of the text layers; the tower has two thirds of it")
    parser.add_argument("--layers", type=int, default=4, help="of the text, and of the tower")
    parser.add_argument("--micro-batch-tokens", type=int, default=16384)
    parser.add_argument("--groups", type=int, nargs="*", default=[8, 24], help="completions of the prompt")
    parser.add_argument("--visual", type=int, nargs="*", default=[256, 512], help="visual tokens of the image")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_folder(Path(scratch) / "model", args.width, args.layers)
        trainer = make_trainer(folder, micro_batch_tokens=args.micro_batch_tokens)
        tower, text = sizes(trainer.module())
        print(f"{text / 1e6:.1f} M parameters of text, {tower / 1e6:.1f} M of the tower")
        trainer.logprobs(batch_of(folder, visual_tokens=64, members=2), "policy")  # the check of the first call
        for visual in args.visual:
            for members in args.groups:
                batch = batch_of(folder, visual_tokens=visual, members=members)
                print(row(trainer, batch, visual, args.turns), flush=True)


def row(trainer: TorchTrainer, batch: TrainBatch, visual: int, turns: int) -> str:
    """Both paths, by turns."""
    paths = {"once": batch, "plain": one_by_one(batch)}
    seconds: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(turns):
        for name, each in paths.items():
            began = time.process_time()
            trainer.update(each)
            seconds[name].append(time.process_time() - began)
    mebibytes = {name: kept_bytes(trainer, each) / 2**20 for name, each in paths.items()}
    took = {name: statistics.median(values) for name, values in seconds.items()}
    return (
        f"G {len(batch.groups[0].members):2}, {visual} visual tokens: "
        f"{took['plain']:.2f} s plain, {took['once']:.2f} s once ({took['plain'] / took['once']:.1f} x); "
        f"{mebibytes['plain']:.0f} MiB plain, {mebibytes['once']:.0f} MiB once "
        f"({mebibytes['plain'] / mebibytes['once']:.1f} x)"
    )


def batch_of(folder: Path, *, visual_tokens: int, members: int) -> TrainBatch:
    """One group whose image becomes so many tokens."""
    rows = 16 if visual_tokens >= 16 * 16 else 8
    size = (visual_tokens // rows * TOKEN_SIDE, rows * TOKEN_SIDE)
    batch = make_vl_batch(folder, [(size,)], members=1)
    draw = random.Random(0)
    completions = tuple(
        TrainMember(
            token_ids=tuple(draw.randrange(256) for _ in range(COMPLETION_TOKENS)),
            advantage=draw.gauss(0.0, 1.0),
            sampling_logprobs=(-5.0,) * COMPLETION_TOKENS,
        )
        for _ in range(members)
    )
    group = replace(batch.groups[0], members=completions)
    return replace(batch, groups=(group,), sequences=members, tokens=members * COMPLETION_TOKENS)


def one_by_one(batch: TrainBatch) -> TrainBatch:
    """The same update with a group for each completion, so that nothing is shared."""
    groups = tuple(replace(group, members=(member,)) for group in batch.groups for member in group.members)
    return replace(batch, groups=groups)


def kept_bytes(trainer: TorchTrainer, batch: TrainBatch) -> int:
    """The most that autograd keeps at once in an update, each storage once."""
    weights = {weight.untyped_storage().data_ptr() for weight in trainer.module().parameters()}
    users: Counter[int] = Counter()
    now = most = 0

    def drop(place: int, size: int) -> None:
        nonlocal now
        users[place] -= 1
        now -= 0 if users[place] else size

    class Kept:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

    def pack(tensor: Tensor) -> Kept:
        nonlocal now, most
        kept, storage = Kept(tensor), tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if place not in weights:
            now += 0 if users[place] else size
            most = max(most, now)
            users[place] += 1
            weakref.finalize(kept, drop, place, size)
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        trainer.update(batch)
    return most


def sizes(model: Any) -> tuple[int, int]:
    """Parameters of the tower, and of all else."""
    tower = sum(weight.numel() for weight in model.get_encoder(modality="image").parameters())
    return tower, sum(weight.numel() for weight in model.parameters()) - tower


def make_folder(folder: Path, width: int, layers: int) -> Path:
    """A random Qwen2-VL of this size, which reads images of up to 1024 tokens."""
    make_vl_folder("qwen2_vl", folder)
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = {name: value for name, value in written["text_config"].items() if name != "layer_types"}
    text |= {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers}
    text |= {"num_attention_heads": width // HEAD, "num_key_value_heads": 2}
    embed = width * 2 // 3 // HEAD * HEAD
    tower = {"embed_dim": embed, "hidden_size": width, "depth": layers, "num_heads": embed // HEAD, "mlp_ratio": 4}
    config = transformers.Qwen2VLConfig(**{**written, "text_config": text, "vision_config": tower})
    transformers.Qwen2VLForConditionalGeneration(config).save_pretrained(folder)
    file = folder / "preprocessor_config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["size"]["longest_edge"] = 1024 * TOKEN_SIDE**2
    file.write_text(json.dumps(content), encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
