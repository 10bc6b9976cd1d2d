"""Bytes a parameter that an update in bf16 takes at its peak: weights, masters, AdamW's numbers, gradients.

    PYTHONPATH=. python benchmarks/update_memory.py --layers 12 --width 640

A random Qwen3 makes two updates with the `torch` trainer on the CPU, in micro-batches of few tokens, so that
activations are small. Prints by how much the process's peak memory grew since before the model was loaded, divided by
the number of parameters.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
from pathlib import Path

from tests.core.trainer.batches import make_batch, make_trainer
from tests.tiny_models import make_model_folder


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=640)
    args = parser.parse_args()
    shape = {"num_hidden_layers": args.layers, "hidden_size": args.width, "intermediate_size": 4 * args.width}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        making = multiprocessing.get_context("spawn").Process(target=make_model_folder, args=(folder,), kwargs=shape)
        making.start()
        making.join()
        warm_up(Path(scratch) / "small")
        before = peak_bytes()
        trainer = make_trainer(folder, precision="bf16", micro_batch_tokens=64)
        for _ in range(2):
            trainer.update(make_batch())
        parameters = sum(weight.numel() for weight in trainer.module().parameters())
        print(f"{parameters / 1e6:.0f} M parameters: {(peak_bytes() - before) / parameters:.1f} bytes each at the peak")


def warm_up(folder: Path) -> None:
    """Whatever libraries keep for themselves is there before anything is measured."""
    make_trainer(make_model_folder(folder), precision="bf16").update(make_batch())


def peak_bytes() -> int:
    """Of this process so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
