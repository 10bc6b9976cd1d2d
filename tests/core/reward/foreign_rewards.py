"""Rewards as they are written for other trainers, and honest ones that look like them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

# TRL's documentation, conversational format


def format_reward_func(completions: Any, **kwargs: Any) -> list[float]:
    """Reward function that checks if the completion has a specific format."""
    pattern = r"^<think>.*?</think><answer>.*?</answer>$"
    completion_contents = [completion[0]["content"] for completion in completions]
    matches = [re.match(pattern, content) for content in completion_contents]
    return [1.0 if match else 0.0 for match in matches]


def reward_func(completions: Any, ground_truth: Any, **kwargs: Any) -> list[float]:
    return [1.0 if c[-1]["content"] == gt else 0.0 for c, gt in zip(completions, ground_truth, strict=True)]


# open-r1


def accuracy_reward(completions: Any, solution: Any, **kwargs: Any) -> list[float]:
    """Reward function that checks if the completion is the same as the ground truth."""
    contents = [completion[0]["content"] for completion in completions]
    rewards = []
    for content, sol in zip(contents, solution, strict=True):
        rewards.append(float(sol in content))
    return rewards


def get_cosine_scaled_reward() -> Callable[..., list[float]]:
    def cosine_scaled_reward(completions: Any, solution: Any, **kwargs: Any) -> list[float]:
        contents = [completion[0]["content"] for completion in completions]
        return [float(sol in content) for content, sol in zip(contents, solution, strict=True)]

    return cosine_scaled_reward


cosine = get_cosine_scaled_reward()

# the well-known demo for gsm8k


def correctness_reward_func(prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    responses = [completion[0]["content"] for completion in completions]
    q = prompts[0][-1]["content"]
    print("-" * 20, f"Question:\n{q}", f"\nAnswer:\n{answer[0]}", f"\nResponse:\n{responses[0]}")
    return [2.0 if r == a else 0.0 for r, a in zip(responses, answer, strict=True)]


def in_a_loop(completions: Any, solution: Any) -> list[float]:
    scores = []
    for index, (completion, sol) in enumerate(zip(completions, solution, strict=True)):
        text = completion[0].get("content")
        scores.append(float(sol in text) + 0 * index)
    return scores


def by_position(completions: Any, solution: Any) -> list[float]:
    scores = []
    for i in range(len(completions)):
        scores.append(float(solution[i] in completions[i][0]["content"]))
    return scores


def every_message(completions: Any) -> list[float]:
    return [float(sum(len(message["content"]) for message in completion)) for completion in completions]


async def awaited(completions: Any, solution: Any) -> list[float]:
    return [float(sol in completion[0]["content"]) for completion, sol in zip(completions, solution, strict=True)]


class Conversational:
    def __call__(self, completions: Any, **kwargs: Any) -> list[float]:
        return [float(len(completion[0]["content"])) for completion in completions]


an_object = Conversational()
a_partial = functools.partial(reward_func, ground_truth=["a"])

# ms-swift


class ORM:
    def __call__(self, **kwargs: Any) -> list[float]:
        raise NotImplementedError


class MathAccuracy(ORM):
    def __call__(self, completions: Any, solution: Any, **kwargs: Any) -> list[float]:
        return [float(sol in text) for text, sol in zip(completions, solution, strict=True)]


class NeedsArguments(ORM):
    def __init__(self, args: Any, **kwargs: Any) -> None:
        self.args = args

    def __call__(self, completions: Any, **kwargs: Any) -> list[float]:
        return [float(self.args is None) for _ in completions]


# verl


def compute_score(data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None) -> dict[str, float]:
    assert isinstance(solution_str, str)
    return {"score": float(ground_truth in solution_str), "source": 0.0 if data_source is None else 1.0}


def gsm8k_score(solution_str: Any, ground_truth: Any, method: str = "strict") -> float:
    return float(ground_truth in solution_str)


def compute_scores(data_sources: Any, solution_strs: Any, ground_truths: Any, extra_infos: Any) -> list[float]:
    rows = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
    return [float(truth in text) for _, text, truth, _ in rows]


# OpenRLHF


def openrlhf(queries: Any, prompts: Any, labels: Any) -> dict[str, list[float]]:
    scores = [
        float(query.startswith(prompt) and label in query)
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    return {"rewards": scores, "scores": scores}


def openrlhf_plain(queries: Any, prompts: Any, **kwargs: Any) -> list[float]:
    return [float(len(query) > len(prompt)) for query, prompt in zip(queries, prompts, strict=True)]


# honest, each with something of the above


def takes_both(completions: Any) -> list[float]:
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [float(len(text)) for text in texts]


def returns_early(completions: Any) -> list[float]:
    if isinstance(completions[0], str):
        return [float(len(text)) for text in completions]
    return [float(len(completion[0]["content"])) for completion in completions]


def catches(completions: Any) -> list[float]:
    scores = []
    for completion in completions:
        try:
            scores.append(float(len(completion[0]["content"])))
        except TypeError:
            scores.append(float(len(completion)))
    return scores


def catches_in_a_helper(completions: Any) -> list[float]:
    def content(completion: Any) -> str:
        return completion[0]["content"] if completion[0:0] != "" else completion

    return [float(len(content(completion))) for completion in completions]


def by_a_switch(completions: Any, chats: bool = False) -> list[float]:
    texts = [completion[0]["content"] for completion in completions] if chats else completions
    return [float(len(text)) for text in texts]


def by_an_early_switch(completions: Any, chats: bool = False) -> list[float]:
    if not chats:
        return [float(len(text)) for text in completions]
    return [float(len(completion[0]["content"])) for completion in completions]


def wraps_them_itself(completions: Any) -> list[float]:
    completions = [[{"role": "assistant", "content": text}] for text in completions]
    return [float(len(completion[0]["content"])) for completion in completions]


def wraps_one_itself(completions: Any) -> list[float]:
    scores = []
    for completion in completions:
        completion = [{"content": completion}]
        scores.append(float(len(completion[0]["content"])))
    return scores


def reads_messages(completions: Any, messages: Any) -> list[float]:
    return [float(chat[-1]["content"] in text) for text, chat in zip(completions, messages, strict=True)]


def reads_a_column(completions: Any, tests: Any) -> list[float]:
    return [float(test[0]["content"] in text) for text, test in zip(completions, tests, strict=True)]


def the_same_name_twice(completions: Any, tests: Any) -> list[float]:
    lengths = [len(item) for item in completions]
    return [float(len(item[0]["content"])) + 0 * sum(lengths) for item in tests]


def parses(completions: Any) -> list[float]:
    import json

    return [float(json.loads(text)[0]["content"]) for text in completions]


def only_where_it_may(completions: Any) -> list[float]:
    return [float(len(c[0]["content"])) if c.startswith("[") and not c else 1.0 for c in completions]


def skips(completions: Any) -> list[float]:
    scores = []
    for completion in completions:
        if hash(completion) != 1:
            scores.append(1.0)
            continue
        scores.append(float(completion[0]["content"]))
    return scores


def filtered(completions: Any) -> list[float]:
    found = [completion[0]["content"] for completion in completions if not completion + ""]
    return [float(len(found)) for _ in completions]


def ground_truth_and_text(completions: Any, ground_truth: Any, data_source: Any) -> list[float]:
    return [float(g in c) for c, g, _ in zip(completions, ground_truth, data_source, strict=True)]


def columns_of_those_names(
    prompts: Any, solution_str: Any, ground_truth: Any, queries: Any, labels: Any
) -> list[float]:
    return [float(a == b) for a, b in zip(solution_str, ground_truth, strict=True)]


def labels_alone(completions: Any, prompts: Any, labels: Any) -> list[float]:
    return [float(label in text) for text, label in zip(completions, labels, strict=True)]


shortest = lambda completions: [float(len(text)) for text in completions]  # noqa: E731
