"""Whole runs with adapters, by the real command: what is learnt, sampled, kept, resumed and refused."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_core.backends import BackendContext, ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.rollout.backend import make as make_rollout
from grpo_core.rollout.options import TransformersRolloutOptions
from grpo_core.types import Message, RolloutRequest, Sample, SamplingParams
from tests.core.model.adapters import load_plain, logits, randomise
from tests.core.trainer.batches import make_trainer
from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments
from tests.tiny_models import make_model_folder

LORA = ("--lora-rank", "4", "--learning-rate", "1e-1")


def gap(run: Path) -> float:
    """The largest difference between the sampler's log-probabilities and the trainer's."""
    found = [row["sampler/gap_max"] for row in metrics_of(run) if "sampler/gap_max" in row]
    assert found
    return max(found)  # type: ignore[type-var, return-value]


def test_a_run_trains_the_adapter_and_leaves_a_model_and_an_adapter(tmp_path: Path) -> None:
    import peft

    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("run", *LORA, "--beta", "0.05", "--eval-rows", "2"))
    assert "of an adapter, which is trained" in done.stdout
    assert gap(tmp_path / "run") < 1e-4
    assert all(row["policy/kl"] is not None for row in metrics_of(tmp_path / "run") if row["step"])
    final, base = load_plain(tmp_path / "run/final"), load_plain(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        adapted = peft.PeftModel.from_pretrained(load_plain(tmp_path / "model"), tmp_path / "run/final/adapter")
    torch.testing.assert_close(logits(adapted), logits(final), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(logits(final), logits(base))
    changed = [name for name, weight in final.state_dict().items() if not torch.equal(weight, base.state_dict()[name])]
    assert changed
    assert all(name.endswith("_proj.weight") for name in changed)
    checkpoint = (tmp_path / "run/checkpoints/step-000004/trainer/weights.safetensors").stat().st_size
    assert checkpoint < (tmp_path / "model/model.safetensors").stat().st_size


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("gemma2", ()),
        ("llama", ("--set", "trainer.lora.modules_to_save=[lm_head, embed_tokens]")),
        ("llama", ("--set", "trainer.lora.targets=[embed_tokens, lm_head, q_proj]")),
        ("qwen3", ("--set", "trainer.gradient_checkpointing=true")),
    ],
)
def test_the_rollout_samples_from_the_adapted_model(tmp_path: Path, family: str, settings: tuple[str, ...]) -> None:
    make_workplace(tmp_path, family=family)
    grpoctl(tmp_path, *train_arguments("run", *LORA, *settings))
    assert gap(tmp_path / "run") < 1e-4


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_resumed_run_is_bit_identical(tmp_path: Path, precision: str) -> None:
    make_workplace(tmp_path)
    extra = ("--save-steps", "2", "--beta", "0.05", "--num-iterations", "2", "--precision", precision)
    grpoctl(tmp_path, *train_arguments("whole", *LORA, *extra))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    shutil.copytree(whole, cut)
    shutil.rmtree(cut / "final")
    shutil.rmtree(cut / "checkpoints/step-000004")
    grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(cut) == metrics_of(whole)
    assert completions_of(cut) == completions_of(whole)
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        assert (cut / "final" / file).read_bytes() == (whole / "final" / file).read_bytes()


def test_a_run_goes_on_with_the_adapter_of_another(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("first", *LORA))
    go_on = ("--set", "trainer.lora.adapter=./first/final/adapter", "--beta", "0.1", "--learning-rate", "1e-9")
    grpoctl(tmp_path, *train_arguments("second", *go_on, "--set", "trainer.lora.merge=false"))
    rows = metrics_of(tmp_path / "second")
    assert all(abs(row["policy/kl"]) < 1e-6 for row in rows if row["step"])  # type: ignore[arg-type]
    assert not list((tmp_path / "second/final").glob("*.safetensors"))
    one, other = (
        json.loads((tmp_path / run / "final/adapter/adapter_config.json").read_text()) for run in ("first", "second")
    )
    assert one == other


def test_a_run_with_an_adapter_is_evaluated(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", *LORA, "--eval-rows", "3"))
    last = [row for row in metrics_of(tmp_path / "run") if "eval/reward_mean" in row][-1]
    found = json.loads(grpoctl(tmp_path, "eval", "run", "--json").stdout.partition("{")[2].join(["{", ""]))
    assert found["eval/reward_mean"] == pytest.approx(last["eval/reward_mean"])


def test_a_streamed_copy_answers_as_the_shared_model_does(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "model", "llama")
    trainer = make_trainer(folder, lora={"modules_to_save": ("lm_head",)})
    randomise(trainer.module())
    request = RolloutRequest(
        sample=Sample(messages=(Message(role="user", content="Hi"),)),
        prompt_text="Hi",
        prompt_ids=(72, 105),
        n=4,
        params=SamplingParams(max_tokens=12),
        seed=3,
    )

    def answer(prepare: Any) -> Any:
        context = BackendContext(
            model=ModelSettings(path=str(folder)),
            rollout=RolloutSettings(),
            trainer=TrainerSettings(),
            objective=ObjectiveSettings(),
            total_updates=1,
        )
        rollout = make_rollout(TransformersRolloutOptions(device="cpu"), context)
        prepare(rollout)
        [group] = rollout.generate([request])
        return group.completions

    shared = answer(lambda rollout: rollout.share(trainer.module(), 1))
    streamed = answer(lambda rollout: rollout.load_weights(trainer.iter_weights(), 1))
    assert [one.token_ids for one in shared] == [one.token_ids for one in streamed]
    for one, other in zip(shared, streamed, strict=True):
        assert one.sampling_logprobs == pytest.approx(other.sampling_logprobs, abs=1e-4)


ERRORS = {
    "trainer.lora.targets: Qwen3ForCausalLM has no module 'q_porj'; did you mean 'q_proj'?": (
        *("--set", "trainer.lora.targets=[q_porj]"),
    ),
    "in this model one weight is both input embedding and head": ("--set", "trainer.lora.modules_to_save=[lm_head]"),
    "model holds no adapter in peft's layout": ("--set", "trainer.lora.adapter=./model"),
    "trainer.lora.rank: must be at least 1, not 0": ("--lora-rank", "0"),
    "trainer.lora.targets: must be": ("--set", "trainer.lora.targets=q_proj"),
    "is empty; give at least 1": ("--set", "trainer.lora.targets=[]"),
    "trainer.lora.rnk: unknown key; did you mean 'rank'?": ("--set", "trainer.lora.rnk=4"),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_cannot_be_trained_is_said_before_weights_are_read(
    tmp_path: Path, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: object, **settings: object) -> None:
        raise AssertionError("the weights are read")

    make_workplace(tmp_path)
    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", read)
    done = grpoctl(tmp_path, *train_arguments("run", *ERRORS[message]), code=2)
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_learning_rate_for_all_weights_is_warned_of(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("run", "--lora-rank", "4", "--learning-rate", "1e-6", "--dry-run"))
    assert "warning: trainer.learning_rate is 1e-06" in done.stderr
    assert "about ten times" in done.stderr
