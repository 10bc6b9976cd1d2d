"""What it takes to prepare a dataset for a run: rows read, samples made, prompts written and encoded, fingerprinted.

    python benchmarks/data.py --rows 50000

Synthetic questions of a chosen length, and a byte-level BPE tokenizer trained on them. Prints seconds of processor time
for each part (machines that do other work at the same time lengthen the rest), the median of several turns; the second
run of a dataset finds its tokens in the cache. Reads nothing and needs no network.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grpo_core.data.fingerprint import fingerprint
from grpo_core.data.samples import load_samples
from grpo_core.data.sources import read_rows
from grpo_core.data.token_cache import encode_cached
from grpo_core.model.tokenizer import FALLBACK_TEMPLATE, encode, render_text
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext, Sample


def main() -> None:
    """Measure and print."""
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), args)


def measure(folder: Path, args: argparse.Namespace) -> None:
    """Time each part of the preparation."""
    dataset = PlannedDataset(reference=str(write_rows(folder / "rows.jsonl", args)))
    tokenizer = make_tokenizer(folder / "rows.jsonl", args.vocabulary)
    samples = load_samples(dataset, split="train", seed=0, context=BuildContext()).samples
    texts = write_prompts(samples, tokenizer)
    os.environ["GRPO_CACHE_DIR"] = str(folder / "cache")
    tokens = sum(map(len, encode_cached(texts, tokenizer)))
    parts: dict[str, Callable[[], object]] = {
        "rows read": lambda: read_rows(dataset, split="train", seed=0),
        "rows read and samples made": lambda: load_samples(dataset, split="train", seed=0, context=BuildContext()),
        "prompts written": lambda: write_prompts(samples, tokenizer),
        "prompts encoded": lambda: encode(texts, tokenizer),
        "tokens found in the cache": lambda: encode_cached(texts, tokenizer),
        "samples fingerprinted": lambda: fingerprint(samples),
    }
    print(f"{len(samples):,} rows, {tokens / len(samples):.0f} tokens a prompt")
    for name, run in parts.items():
        print(f"{name:<30} {median_s(run, args.turns):8.2f} s")


def median_s(run: Callable[[], object], turns: int) -> float:
    """The median of several turns, in seconds of processor time."""
    seconds = []
    for _ in range(turns):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def write_prompts(samples: tuple[Sample, ...], tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """The chat template applied."""
    return [render_text(sample.messages, tokenizer) for sample in samples]


def write_rows(file: Path, args: argparse.Namespace) -> Path:
    """Questions of random words, none twice."""
    source = random.Random(args.seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(source.choices(letters, range(26, 0, -1), k=source.randint(2, 9))) for _ in range(8000)]
    with file.open("w", encoding="utf-8") as lines:
        for row in range(args.rows):
            question = " ".join(source.choices(words, k=args.words))
            lines.write(json.dumps({"query": f"{row}: {question}?", "solution": str(row), "task": "math"}) + "\n")
    return file


def make_tokenizer(file: Path, vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, as most models have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<end>"], show_progress=False)
    with file.open(encoding="utf-8") as lines:
        tokenizer.train_from_iterator((line for line, _ in zip(lines, range(2000))), trainer)  # noqa: B905
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    wrapped.chat_template = FALLBACK_TEMPLATE
    return wrapped


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 50_000), ("words", 60), ("vocabulary", 8_000), ("turns", 3), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
