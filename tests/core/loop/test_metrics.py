"""Metrics that only the loop can know."""

from grpo_core.loop.metrics import completion_metrics, dataset_metrics, merge_updates
from grpo_core.types import UpdateReport
from tests.core.loop.make import completion, scored_group


def test_lengths_are_in_tokens_and_truncation_is_the_finish_reason() -> None:
    group = scored_group([1.0, 0.0], completions=[completion(2), completion(6, truncated=True)])
    metrics = completion_metrics([group])
    assert metrics["completions/length_mean"] == 4.0
    assert metrics["completions/length_max"] == 6.0
    assert metrics["completions/truncated_share"] == 0.5
    assert metrics["completions/finished_length_mean"] == 2.0
    assert metrics["completions/tokens"] == 8.0


def test_a_step_in_which_nothing_finished_has_no_finished_length() -> None:
    group = scored_group([0.0], completions=[completion(6, truncated=True)])
    assert "completions/finished_length_mean" not in completion_metrics([group])


def test_updates_are_merged_by_what_their_names_mean() -> None:
    first = UpdateReport(
        metrics={"policy/loss": 1.0, "policy/ratio_max": 1.5, "trainer/tokens": 10.0, "trainer/learning_rate": 1e-3}
    )
    second = UpdateReport(
        metrics={"policy/loss": 3.0, "policy/ratio_max": 1.2, "trainer/tokens": 5.0, "trainer/learning_rate": 2e-3}
    )
    assert merge_updates([first, second]) == {
        "policy/loss": 2.0,
        "policy/ratio_max": 1.5,
        "trainer/tokens": 15.0,
        "trainer/learning_rate": 2e-3,
    }


def test_an_update_without_a_metric_is_left_out_of_its_mean() -> None:
    assert merge_updates([UpdateReport(metrics={"policy/kl": 0.5}), UpdateReport(metrics={})]) == {"policy/kl": 0.5}


def test_each_dataset_of_a_mix_has_its_share_and_its_reward() -> None:
    groups = [
        scored_group([1.0, 0.0], columns={"dataset": "maths"}),
        scored_group([0.0, None], columns={"dataset": "maths"}),
        scored_group([None, None], columns={"dataset": "code"}),
    ]
    assert dataset_metrics(["maths", "code", "chat"], groups) == {
        "data/maths/share": 2 / 3,
        "data/maths/reward": 1 / 3,
        "data/code/share": 1 / 3,
        "data/code/reward": None,
        "data/chat/share": 0.0,
        "data/chat/reward": None,
    }
