"""Save and restore are exact; what does not fit is refused before anything changes; exports load in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from grpo_core.errors import CheckpointError
from grpo_core.trainer.backend import TorchTrainer
from grpo_core.types import UpdateReport
from tests.core.trainer.batches import make_batch, make_trainer
from tests.tiny_models import END_ID, Family, make_model_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("qwen3") / "model")


def train(trainer: TorchTrainer, seeds: range) -> list[UpdateReport]:
    return [trainer.update(make_batch(seed=seed)) for seed in seeds]


def saved(trainer: TorchTrainer, directory: Path) -> Path:
    directory.mkdir()
    trainer.save(directory)
    return directory


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_a_restored_trainer_goes_on_bit_by_bit(tmp_path: Path, precision: str, family: Family) -> None:
    settings: dict[str, Any] = {"precision": precision, "schedule": "cosine", "warmup_updates": 2, "weight_decay": 0.1}
    folder = make_model_folder(tmp_path / "model", family)
    through = make_trainer(folder, **settings)
    train(through, range(3))
    directory = saved(through, tmp_path / "checkpoint")
    resumed = make_trainer(folder, **settings)
    train(resumed, range(5, 6))  # other weights, momentum and count, all to be overwritten
    resumed.restore(directory)
    assert train(through, range(3, 6)) == train(resumed, range(3, 6))
    for (name, expected), (_, actual) in zip(through.iter_weights(), resumed.iter_weights(), strict=True):
        assert torch.equal(actual, expected), name
    first, second = saved(through, tmp_path / "a"), saved(resumed, tmp_path / "b")
    for file in ("weights.safetensors", "optimizer.safetensors"):
        one, other = load_file(first / file), load_file(second / file)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_trainer_saved_before_its_first_update_restores(folder: Path, tmp_path: Path) -> None:
    trainer = make_trainer(folder)
    directory = saved(trainer, tmp_path / "fresh")
    expected = train(trainer, range(2))
    trainer.restore(directory)
    assert train(trainer, range(2)) == expected


def test_bf16_checkpoints_hold_the_fp32_masters(folder: Path, tmp_path: Path) -> None:
    trainer = make_trainer(folder, precision="bf16", learning_rate=1e-6)
    train(trainer, range(1))
    masters = load_file(saved(trainer, tmp_path / "checkpoint") / "weights.safetensors")
    rounded = 0
    for name, tensor in trainer.iter_weights():
        assert tensor.dtype == torch.bfloat16
        assert masters[name].dtype == torch.float32
        assert torch.equal(masters[name].to(torch.bfloat16), tensor)
        rounded += int((masters[name] != tensor).sum())
    assert rounded > 0


def test_files_are_plain_and_complete(folder: Path, tmp_path: Path) -> None:
    trainer = make_trainer(folder)
    train(trainer, range(1))
    directory = saved(trainer, tmp_path / "checkpoint")
    assert {path.name for path in directory.iterdir()} == {
        "weights.safetensors",
        "optimizer.safetensors",
        "trainer.json",
    }
    assert json.loads((directory / "trainer.json").read_text()) == {"format": 1, "precision": "fp32", "updates": 1}


def edited(folder: Path, tmp_path: Path, edit: Any) -> tuple[TorchTrainer, Path]:
    """A trainer, and a checkpoint of it that `edit` has damaged."""
    trainer = make_trainer(folder)
    train(trainer, range(1))
    directory = saved(trainer, tmp_path / "checkpoint")
    edit(directory)
    return trainer, directory


def drop_file(name: str) -> Any:
    return lambda directory: (directory / name).unlink()


def edit_json(**changes: object) -> Any:
    def edit(directory: Path) -> None:
        path = directory / "trainer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return edit


def edit_weights(change: Any, file: str = "weights.safetensors") -> Any:
    def edit(directory: Path) -> None:
        tensors = load_file(directory / file)
        change(tensors)
        save_file(tensors, directory / file)

    return edit


DAMAGES = {
    r"trainer\.json cannot be read": drop_file("trainer.json"),
    r"trainer\.json cannot be read: .*extra": edit_json(extra=1),
    r"weights\.safetensors cannot be read": drop_file("weights.safetensors"),
    r"optimizer\.safetensors cannot be read": lambda folder: (folder / "optimizer.safetensors").write_bytes(b"abc"),
    r"trainer\.json has format 2, and this version reads 1": edit_json(format=2),
    r"has format deepspeed-1, .*\n  resume with the trainer that": edit_json(format="deepspeed-1", stage=3),
    r"is of a run with trainer\.precision bf16, and this one has fp32": edit_json(precision="bf16"),
    r"weights\.safetensors lacks model\.norm\.weight": edit_weights(lambda t: t.pop("model.norm.weight")),
    r"has a weight the model does not know, stranger": edit_weights(lambda t: t.update(stranger=torch.ones(1))),
    r"model\.norm\.weight has the shape \[3\], and \[32\] in the model": edit_weights(
        lambda t: t.update({"model.norm.weight": torch.ones(3)})
    ),
    r"has numbers of weights the model lacks: exp_avg/stranger": edit_weights(
        lambda t: t.update({"exp_avg/stranger": torch.ones(1)}), "optimizer.safetensors"
    ),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_changes_nothing(folder: Path, tmp_path: Path, message: str) -> None:
    trainer, directory = edited(folder, tmp_path, DAMAGES[message])
    before = {name: tensor.clone() for name, tensor in trainer.iter_weights()}
    with pytest.raises(CheckpointError, match=message):
        trainer.restore(directory)
    assert all(torch.equal(before[name], tensor) for name, tensor in trainer.iter_weights())


def test_a_folder_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere: the trainer's state cannot be written: .*\n.*disk full"):
        make_trainer(folder).save(tmp_path / "nowhere")


@pytest.mark.parametrize("family", ["qwen3", "gemma2", "llama"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_export_loads_in_transformers_with_the_trained_weights(
    tmp_path: Path, family: Family, precision: str, capfd: pytest.CaptureFixture[str]
) -> None:
    trainer = make_trainer(make_model_folder(tmp_path / "model", family), precision=precision)
    train(trainer, range(1))
    capfd.readouterr()
    trainer.export(tmp_path / "final")
    assert capfd.readouterr() == ("", "")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "final")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "final")
    exported = model.state_dict()
    assert all(torch.equal(exported[name], tensor) for name, tensor in trainer.iter_weights())
    assert model.generation_config.eos_token_id == END_ID
    assert tokenizer.decode(tokenizer("3 * 4 = 12")["input_ids"]) == "3 * 4 = 12"
    assert tokenizer.chat_template


def test_an_export_is_a_model_to_train(folder: Path, tmp_path: Path) -> None:
    trainer = make_trainer(folder)
    train(trainer, range(1))
    trainer.export(tmp_path / "final")
    again = make_trainer(tmp_path / "final")
    assert again.logprobs(make_batch(), "policy") == trainer.logprobs(make_batch(), "policy")
