"""toolbench: the reference's call or nothing."""

from __future__ import annotations

import pytest

from grpo_core.reward.builtin.toolbench import toolbench

REFERENCE = 'Thought: look it up\nAction: weather\nAction Input: {"city": "Oslo", "days": 3, "hourly": false}'


def call(arguments: str, tool: str = "weather", before: str = "<think>a</think>\n") -> str:
    return f"{before}Action: {tool}\nAction Input: {arguments}"


@pytest.mark.parametrize(
    "completion",
    [
        call('{"city": "Oslo", "days": 3, "hourly": false}'),
        call('{"days":3,\n "hourly":false, "city":"Oslo"}'),
        call('{"city": "Oslo", "days": 3.0, "hourly": false}'),
        call('{"city": "Oslo", "days": 3, "hourly": false}', before="Thought: yes\n"),
        call('{"city": "Oslo", "days": 3, "hourly": false}', before="<think>Action: other\nAction Input: x</think>"),
    ],
)
def test_the_reference_call_scores_1_however_its_json_is_laid_out(completion: str) -> None:
    assert toolbench([completion], [REFERENCE]) == [1.0]


@pytest.mark.parametrize(
    "completion",
    [
        "",
        call('{"city": "Oslo", "days": 3, "hourly": false}', tool="forecast"),
        call('{"city": "Oslo", "days": 4, "hourly": false}'),
        call('{"city": "Oslo", "days": 3}'),
        call('{"city": "Oslo", "days": 3, "hourly": false, "units": "C"}'),
        call('{"city": "Oslo", "days": "3", "hourly": false}'),
        call('{"city": "Oslo", "days": 3, "hourly": 0}'),
        call('{"city": "Rome", "city": "Oslo", "days": 3, "hourly": false}'),
        call('{"city": "Oslo", "days": NaN, "hourly": false}'),
        call('{"city": "Oslo", "days": 3, "hourly": false'),
        call("[" * 100_000),
        call('{"city": "Oslo", "days": 3, "hourly": false}') + "\nObservation: sunny",
        call("{}") + "\n" + call('{"city": "Oslo", "days": 3, "hourly": false}', before=""),
        "<think>" + call('{"city": "Oslo", "days": 3, "hourly": false}', before=""),
        'Action: weather\nor not\nAction Input: {"city": "Oslo", "days": 3, "hourly": false}',
    ],
)
def test_anything_else_scores_0_and_shared_arguments_earn_nothing(completion: str) -> None:
    assert toolbench([completion], [REFERENCE]) == [0.0]


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    reference = "Action: search\nAction Input: weather  in Oslo"
    texts = [call("weather in\nOslo", tool="search"), call("weather in Rome", tool="search")]
    assert toolbench(texts, [reference] * 2) == [1.0, 0.0]


def test_lists_and_objects_inside_are_compared_whole() -> None:
    reference = 'Action: sum\nAction Input: {"values": [1, {"a": null}]}'
    texts = [call('{"values": [1, {"a": null}]}', tool="sum"), call('{"values": [{"a": null}, 1]}', tool="sum")]
    assert toolbench(texts, [reference] * 2) == [1.0, 0.0]


@pytest.mark.parametrize("solution", [None, "", "Oslo", 7, "Action: weather", "Action Input: {}"])
def test_a_row_without_a_call_is_not_judged(solution: object) -> None:
    assert toolbench([call("{}")], [solution]) == [None]


def test_a_thought_that_the_prompt_opened_holds_no_call() -> None:
    text = call('{"city": "Oslo", "days": 3, "hourly": false}', before="")
    scores = toolbench([text, "a</think>" + text], [REFERENCE] * 2, prompts=["<think>\n"] * 2)
    assert scores == [0.0, 1.0]
