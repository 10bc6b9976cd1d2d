from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from grpo_core.backends import Recipe
from grpo_rollout_vllm.options import VllmRolloutOptions


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        (["localhost:8000"], "'localhost:8000' is no address of a server: write http://HOST:PORT, without a path"),
        (["http://a:8000/v1"], "'http://a:8000/v1' is no address of a server"),
        ([], "give one address at least"),
    ],
)
def test_what_is_no_address_is_told_once_and_with_an_example(urls: list[str], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        VllmRolloutOptions(urls=tuple(urls))
    (error,) = raised.value.errors()
    assert said in error["msg"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompts_in_flight": 10**9}, "less than or equal to 1024"),
        ({"engine": {"tensor_parallel_size": 1000}}, "would start processes beside the ranks"),
        ({"engine": {"data_parallel_size": 2}}, "set rollout.options.tensor_parallel"),
    ],
)
def test_no_option_starts_more_threads_or_processes_than_can_be_of_use(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        VllmRolloutOptions(**options)


def problems(options: dict[str, Any], **sections: Any) -> dict[str, str]:
    recipe = Recipe.model_validate({"model": "m", "dataset": "d", "rewards": ["r"], **sections})
    return dict(VllmRolloutOptions(**options).contradictions(recipe))


LORA = {"lora": {"rank": 4}}


@pytest.mark.parametrize(
    ("options", "sections", "path", "said"),
    [
        (
            {"mode": "colocated"},
            {"rollout": {"use": "vllm", "max_staleness": 1}},
            "rollout.max_staleness",
            "an engine in the processes that train cannot generate meanwhile; leave it at 0, or use servers",
        ),
        (
            {"mode": "colocated", "lora": "adapter"},
            {"trainer": LORA},
            "rollout.options.lora",
            "an engine in the processes that train gets whole weights",
        ),
        (
            {"transfer": "network", "lora": "adapter"},
            {"trainer": LORA},
            "rollout.options.lora",
            "servers read an adapter from a folder; set rollout.options.transfer to auto",
        ),
        ({"lora": "adapter"}, {}, "rollout.options.lora", "there is no adapter: set trainer.lora"),
    ],
)
def test_what_excludes_each_other_is_found_when_the_run_is_planned(
    options: dict[str, Any], sections: dict[str, Any], path: str, said: str
) -> None:
    assert said in problems(options, **sections)[path]


def test_what_goes_together_is_no_problem() -> None:
    assert problems({}) == {}
    assert problems({"lora": "adapter"}, trainer=LORA) == {}
    assert problems({"transfer": "network"}, trainer=LORA) == {}
    assert problems({}, rollout={"use": "vllm", "max_staleness": 1}) == {}


def test_arguments_of_vllm_that_lead_to_code_are_told() -> None:
    options = VllmRolloutOptions(engine={"trust_remote_code": True, "worker_cls": "evil.Worker", "max_num_seqs": 4})
    assert list(options.named_code()) == ["vLLM's trust_remote_code=True", "vLLM's worker_cls='evil.Worker'"]
    assert list(VllmRolloutOptions().named_code()) == []
