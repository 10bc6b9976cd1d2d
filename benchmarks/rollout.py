"""Generation by the `transformers` rollout backend beside Hugging Face `generate`, in one run, in turn.

    python benchmarks/rollout.py --prompts 32 --completions 16 --threads 2

A randomly initialised model of the demo's shape (or `--hidden`, `--layers`, …). Some tokens count as end tokens, so
that completions differ in length as they do in training. Prints the median of several turns of each, and the median of
the turns' ratios: machines that do other work at the same time slow both. Reads nothing and needs no network.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models

from grpo_core.rollout.choose import choose_decoder
from grpo_core.rollout.forward import decoding
from grpo_core.rollout.stop import CompletionText
from grpo_core.rollout.wave import Wave, plan_waves
from grpo_core.types import Message, RolloutRequest, Sample, SamplingParams

PAD = 0


def main() -> None:
    """Measure and print."""
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = make_model(args)
    prompts = make_prompts(args)
    text = CompletionText(make_tokenizer(args.vocab), range(1, 1 + args.end_tokens))
    ways: dict[str, Callable[[int], int]] = {
        "hugging face": lambda turn: generate_by_hugging_face(model, prompts, args, text, turn),
        "ours": lambda turn: generate_by_us(model, prompts, args, text, turn),
    }
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(args.turns + 1):
        for name, generate in ways.items():
            start = time.perf_counter()
            tokens = generate(turn)
            if turn > 0:  # the first is for warming up
                speeds[name].append(tokens / (time.perf_counter() - start))
    report(args, model, speeds)


def generate_by_hugging_face(model: Any, prompts: list[list[int]], args: Any, text: CompletionText, turn: int) -> int:
    """Every prompt repeated for each completion, in batches of the size that ours uses; tokens generated."""
    torch.manual_seed(turn)
    repeated = sorted((prompt for prompt in prompts for _ in range(args.completions)), key=len)
    tokens = 0
    for start in range(0, len(repeated), args.hf_sequences):
        batch = repeated[start : start + args.hf_sequences]
        longest = max(map(len, batch))
        ids = torch.tensor([[PAD] * (longest - len(prompt)) + prompt for prompt in batch])
        out = model.generate(
            ids,
            attention_mask=(ids != PAD).long(),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=args.max_tokens,
            eos_token_id=sorted(text.end_ids),
            pad_token_id=PAD,
        )
        tokens += sum(length_of(row, text) for row in out[:, longest:].tolist())
    return tokens


def generate_by_us(model: Any, prompts: list[list[int]], args: Any, text: CompletionText, turn: int) -> int:
    """What the backend does, without loading a model from a folder; tokens generated."""
    params = SamplingParams(max_tokens=args.max_tokens)
    requests = [
        RolloutRequest(
            sample=Sample(messages=(Message(role="user", content=""),), id=str(p)),
            prompt_text="",
            prompt_ids=tuple(prompt),
            n=args.completions,
            params=params,
            seed=turn * len(prompts) + p,
        )
        for p, prompt in enumerate(prompts)
    ]
    make_decoder = choose_decoder(model, [r.prompt_ids for r in requests], prefill_tokens=8192)
    tokens = 0
    for part in plan_waves(requests, args.sequences):
        wave = Wave(part, make_decoder(args.max_tokens), text, 0)
        while not wave.done:
            with decoding(model):
                groups = wave.advance()
            tokens += sum(len(completion.token_ids) for group in groups for completion in group.completions)
    return tokens


def length_of(token_ids: Sequence[int], text: CompletionText) -> int:
    """Tokens up to the end token."""
    return next((i + 1 for i, token in enumerate(token_ids) if token in text.end_ids), len(token_ids))


def make_model(args: Any) -> Any:
    """Qwen3, random weights."""
    config = transformers.Qwen3Config(
        vocab_size=args.vocab,
        hidden_size=args.hidden,
        intermediate_size=3 * args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        num_key_value_heads=args.kv_heads,
        head_dim=args.head_dim,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return transformers.Qwen3ForCausalLM(config).eval()


def make_prompts(args: Any) -> list[list[int]]:
    """Random tokens, lengths within a fifth of `--prompt-tokens`."""
    rng = random.Random(args.seed)
    spread = args.prompt_tokens // 5
    lengths = [args.prompt_tokens + rng.randint(-spread, spread) for _ in range(args.prompts)]
    return [[rng.randrange(1, args.vocab) for _ in range(length)] for length in lengths]


def make_tokenizer(vocab: int) -> Any:
    """One word a token: decoding costs what it costs in a run."""
    words = models.WordLevel({f"w{i} ": i for i in range(vocab)}, unk_token="w0 ")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), pad_token="w0 ")


def report(args: Any, model: Any, speeds: dict[str, list[float]]) -> None:
    """Print medians and the median ratio."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        f"{parameters / 1e6:.1f} M parameters, {args.prompts} prompts of about {args.prompt_tokens} tokens x "
        f"{args.completions} completions of up to {args.max_tokens}, {args.threads} threads, {args.turns} turns"
    )
    for name, values in speeds.items():
        print(f"{name:>13}: {statistics.median(values):9.0f} tokens/s")
    ratios = [ours / theirs for ours, theirs in zip(speeds["ours"], speeds["hugging face"], strict=True)]
    print(f"{'ratio':>13}: {statistics.median(ratios):9.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")


def arguments() -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {
        "prompts": 32, "completions": 16, "prompt-tokens": 80, "max-tokens": 64, "end-tokens": 12, "vocab": 512,
        "hidden": 128, "layers": 4, "heads": 4, "kv-heads": 2, "head-dim": 32, "threads": 1, "turns": 5, "seed": 0,
        "sequences": 512, "hf-sequences": 512,
    }  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
