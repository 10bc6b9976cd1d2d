"""From rollout groups to scored groups: routing, scopes, de-duplication, totals, failures."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.errors import RewardError
from grpo_core.reward.metrics import reward_metrics
from grpo_core.types import Failed
from tests.core.reward.making import group, planned, score, score_once, scorer

texts = st.lists(st.sampled_from(["score 0", "score 1", "score 0.5", "none", "nan"]), min_size=1, max_size=5)


def test_totals_are_the_weighted_sum_of_what_applies() -> None:
    with scorer(planned("length", weight=2.0), planned("by_text", weight=0.5), max_failed_share=1.0) as made:
        (one,) = score(made, group(["score 1", "none", "nan"]))
    assert one.outcomes["length"] == (7.0, 4.0, 3.0)
    assert one.totals == (14.5, 8.0, None)


def test_the_mean_is_an_option_and_needs_weights_of_at_least_0() -> None:
    with scorer(planned("length", weight=1.0), planned("by_text", weight=3.0), reduce="mean") as made:
        (one,) = score(made, group(["score 1", "none"]))
    assert one.totals == (2.5, 4.0)
    with (
        pytest.raises(RewardError, match="needs weights of at least 0"),
        scorer(planned("length", weight=-1.0), reduce="mean"),
    ):
        pass


def test_every_completion_comes_with_the_columns_of_its_own_sample() -> None:
    with scorer(planned("solves"), columns=["solution"]) as made:
        first, second = score(made, group(["3", "8"], {"solution": "3"}), group(["3", "8"], {"solution": "8"}))
    assert first.outcomes["solves"] == (1.0, 0.0)
    assert second.outcomes["solves"] == (0.0, 1.0)


def test_a_sample_goes_to_the_rewards_of_its_task_and_others_are_not_called() -> None:
    math, code = planned("length", tasks=("math",)), planned("by_text", tasks=("code", "7"))
    with scorer(math, code, columns=["task"]) as made:
        scored = score(
            made, group(["raise x"], {"task": "math"}), group(["score 1"], {"task": "code"}),
            group(["score 2"], {"task": 7}), group(["score 3"]),
        )  # fmt: skip
    assert [one.outcomes["length"][0] for one in scored] == [7.0, None, None, 7.0]
    assert [one.outcomes["by_text"][0] for one in scored] == [None, 1.0, 2.0, 3.0]


def test_scope_decides_how_much_a_reward_sees() -> None:
    with scorer(planned("rank_in_group", scope="group"), planned("count_of_step", scope="step")) as made:
        first, second = score(made, group(["b", "a"]), group(["x", "z", "y"]))
    assert first.outcomes == {"rank_in_group": (1.0, 0.0), "count_of_step": (5.0, 5.0)}
    assert second.outcomes == {"rank_in_group": (0.0, 2.0, 1.0), "count_of_step": (5.0, 5.0, 5.0)}


def test_a_step_reward_sees_only_the_groups_of_its_tasks() -> None:
    with scorer(planned("count_of_step", scope="step", tasks=("math",)), columns=["task"]) as made:
        first, second = score(made, group(["a", "b"], {"task": "math"}), group(["c"], {"task": "code"}))
    assert first.outcomes["count_of_step"] == (2.0, 2.0)
    assert second.outcomes["count_of_step"] == (None,)


@pytest.mark.parametrize("scope", ["group", "step"])
def test_groups_and_steps_can_be_scored_in_a_worker(scope: str) -> None:
    assert score_once(planned("rank_in_group", scope=scope, runs_in="worker"), group(["b", "a"])) == [1.0, 0.0]


def test_scoring_starts_when_a_group_arrives(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    with scorer(planned("slowly"), planned("by_text", runs_in="worker"), workers=2) as made:
        scoring = made.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
        scoring.add(group([f"touch {touched}", "score 0.5"]))
        until = time.monotonic() + 60.0  # the rollout goes on meanwhile
        while not touched.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert touched.exists()
        (one,) = scoring.finish()
    assert one.outcomes == {"slowly": (1.0, None), "by_text": (1.0, 0.5)}


def test_async_rewards_of_a_step_run_together() -> None:
    with scorer(planned("slowly"), planned("async_object")) as made:
        began = time.monotonic()
        scored = score(made, *[group(["a", "b", "c"])] * 40)
    assert time.monotonic() - began < 6.0, "40 calls of 0.2 s"
    assert {one.outcomes["slowly"] for one in scored} == {(1.0, None, 0.0)}
    assert {one.outcomes["async_object"] for one in scored} == {(0.5, 0.5, 0.5)}


def test_identical_answers_of_a_pure_reward_are_scored_once() -> None:
    reward = planned("process_facts", pure=True)
    with scorer(planned("length", pure=True)) as made:
        calls = _calls(made)
        first, second = score(made, group(["a", "bb", "a"]), group(["bb", "c"], id="train-000001"))
        assert calls == [["a", "bb"], ["c"]]
    assert first.outcomes["length"] == (1.0, 2.0, 1.0)
    assert second.outcomes["length"] == (2.0, 1.0)
    with scorer(reward) as made:
        (one,) = score(made, group(["a", "a"]))
    assert one.records["pid"][0] == one.records["pid"][1], "records go with the score"


def test_without_pure_everything_is_scored_and_the_next_step_scores_afresh() -> None:
    with scorer(planned("length")) as made:
        calls = _calls(made)
        score(made, group(["a", "a"]))
        assert calls == [["a", "a"]]
    with scorer(planned("length", pure=True)) as made:
        calls = _calls(made)
        score(made, group(["a"]))
        score(made, group(["a"]), step=2)
        assert calls == [["a"], ["a"]]


def _calls(made) -> list[list[str]]:
    calls = made.rewards[0].function.__globals__["CALLS"]
    calls.clear()
    return calls


def test_identical_answers_to_other_columns_are_scored_apart() -> None:
    with scorer(planned("solves", pure=True), columns=["solution"]) as made:
        scored = score(made, group(["3", "3"], {"solution": "3"}), group(["3"], {"solution": 3}))
    assert [one.outcomes["solves"] for one in scored] == [(1.0, 1.0), (0.0,)]


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4))
def test_de_duplication_leaves_every_outcome_and_total(groups: list[list[str]]) -> None:
    found = []
    for pure in (True, False):
        with scorer(planned("by_text", pure=pure), planned("length", pure=pure), max_failed_share=1.0) as made:
            found.append([(one.outcomes, one.totals) for one in score(made, *map(group, groups))])
    assert found[0] == found[1]


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_groups_and_of_their_members_leaves_scores(groups: list[list[str]], random) -> None:
    order = random.sample(range(len(groups)), len(groups))
    with scorer(planned("by_text", pure=True), max_failed_share=1.0) as made:
        straight = score(made, *map(group, groups))
        turned = score(made, *(group(groups[i][::-1]) for i in order), step=2)
    for i, one in zip(order, turned, strict=True):
        assert one.outcomes["by_text"] == straight[i].outcomes["by_text"][::-1]
        assert one.totals == straight[i].totals[::-1]


def test_records_are_kept_by_name_beside_the_scores() -> None:
    first = planned("records", name="first", tasks=("a",))
    second = planned("records", name="second", runs_in="worker")
    with scorer(first, second, columns=["solution", "task"]) as made:
        scored = score(
            made,
            group(["x", "y"], {"solution": "x", "task": "a"}),
            group(["z"], {"solution": "x", "task": "b"}, id="train-000001"),
        )
    assert scored[0].records == {"parsed": ("X", "Y"), "all": ({"n": 2}, {"n": 2})}
    assert scored[1].records == {"parsed": ("Z",), "all": ({"n": 1},)}


def test_the_state_of_the_run_reaches_workers_too() -> None:
    for runs_in in ("main", "worker"):
        with scorer(planned("state", runs_in=runs_in)) as made:
            (one,) = score(made, group(["a"]), step=3)
        assert one.outcomes["state"] == (pytest.approx(2 + 0.10 + 0.0005),)


def test_too_many_failures_stop_the_run_and_say_what_to_do() -> None:
    with pytest.raises(RewardError) as caught:
        score_once(planned("by_text"), group(["raise verification_info"] * 4, id="train-000007"), group(["score 1"]))
    message = str(caught.value)
    assert "reward 'by_text' failed on 4 of 5 completions (80%) in step 1" in message
    assert (
        "scoring.max_failed_share=0.1 allows; first on sample train-000007: raised KeyError: 'verification_info'"
        in message
    )
    assert "; or allow more failures with --set scoring.max_failed_share=0.9 (failed completions" in message


def test_a_reward_that_always_fails_is_to_be_mended_and_not_allowed() -> None:
    with pytest.raises(RewardError, match=r"failed on 2 of 2 completions \(100%\)") as caught:
        score_once(planned("by_text"), group(["nan"] * 2))
    assert caught.value.hint == "Mend the reward, or have it return None for samples it cannot judge."


@pytest.mark.parametrize(
    ("scores", "weights"),
    [((1e300, 1.0), (1e9, 1.0)), ((1e308, 1e308), (1.0, 1.0)), ((1e155, 0.0), (0.0, 1.0)), ((1e11, 1.0), (1e9, 1.0))],
)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_scores_that_would_overflow_a_total_are_failures_of_their_reward_and_sample(
    scores: tuple[float, float], weights: tuple[float, float], reduce: str
) -> None:
    rewards = [planned("as_told", name=f"r{i}", columns={"outcomes": f"c{i}"}, weight=w) for i, w in enumerate(weights)]
    columns = {f"c{i}": [score, 0.25] for i, score in enumerate(scores)}
    with scorer(*rewards, columns=list(columns), reduce=reduce, max_failed_share=0.9) as made:
        (one,) = score(made, group(["0", "1"], columns))
    assert one.totals == (
        None,
        pytest.approx(sum(0.25 * w for w in weights) / (sum(weights) if reduce == "mean" else 1)),
    )
    assert all(math.isfinite(value) for value in reward_metrics([one]).values() if value is not None)


def test_none_is_no_score_so_it_does_not_dilute_the_share_of_failures() -> None:
    with pytest.raises(RewardError, match="failed on 1 of 2"):
        score_once(
            planned("by_text"), *[group([text]) for text in ["none"] * 20 + ["nan", "score 1"]], max_failed_share=0.4
        )


def test_failures_within_the_ceiling_are_reported_once_a_reason_with_their_row(caplog) -> None:
    with scorer(planned("by_text"), max_failed_share=0.5) as made:
        for step in (1, 2):
            scored = score(made, group(["nan", "score 1"], id="train-000003"), group(["nan", "score 1"]), step=step)
    assert scored[0].outcomes["by_text"][0] == Failed("returned nan, which is not a finite number")
    assert caplog.messages == [
        "reward 'by_text' failed on sample train-000003: returned nan, which is not a finite number; its row: "
        '{"prompt": "1+1?"}'
    ]


def test_endless_new_reasons_are_reported_twenty_times(caplog) -> None:
    with scorer(planned("by_text"), max_failed_share=1.0) as made:
        score(made, *[group([f"raise {number}"]) for number in range(30)])
    assert len(caplog.messages) == 20
    assert caplog.messages[-1].endswith("(further reasons of this reward are only counted)")


def test_completions_that_no_reward_applied_to_are_reported_once(caplog) -> None:
    with scorer(planned("by_text")) as made:
        (one,) = score(made, group(["none", "none"], {"solution": "2"}, id="train-000003"))
        score(made, group(["none", "none"]), step=2)
    assert one.totals == (None, None)
    (message,) = caplog.messages
    assert message == (
        "no reward applied to 2 of the step's completions, first of sample train-000003: they have no total and train "
        'nothing; its row: {"prompt": "1+1?", "solution": "2"}; later ones are only counted (reward/no_total)'
    )


def test_a_reward_that_applies_to_some_answers_of_a_prompt_is_warned_of_once(caplog) -> None:
    with scorer(planned("by_text"), planned("length")) as made:
        score(made, group(["score 1", "score 0"]), group(["none", "score 1"], {"solution": "2"}, id="train-000003"))
        score(made, group(["none", "score 1"]), step=2)
    (message,) = caplog.messages
    assert message.startswith("reward 'by_text' applied to some completions of sample train-000003 and not to others")
    assert 'its row: {"prompt": "1+1?", "solution": "2"}' in message
    assert message.endswith("later ones are only counted (rewards/by_text/mixed_groups)")


def test_a_single_greedy_answer_can_be_scored() -> None:
    with scorer(planned("length")) as made:
        scored = score(made, group(["abc"]), group(["a"]))
    assert [one.totals for one in scored] == [(3.0,), (1.0,)]


@pytest.mark.parametrize(("budget_s", "hung"), [(0.15, 0.0), (None, Failed("took longer than its deadline of 0.3 s"))])
def test_the_drill(budget_s: float | None, hung: object) -> None:
    """200 samples: 20 kill their worker, 20 never return, and the other 160 keep their true scores."""
    workers, deadline_s = 4, 0.3 if budget_s is None else 20.0
    orders = [f"score {(i * 37 % 101) / 100}" for i in range(160)]
    for i in range(20):
        orders.insert(i * 9, "die" if i % 2 else "kill")
        orders.insert(i * 9 + 4, "hang" if i % 2 else "ignore-signals")
    reward = planned("by_text", runs_in="worker", budget_s=budget_s, deadline_s=deadline_s)
    groups = [group(orders[start : start + 8], id=f"train-{start:06}") for start in range(0, 200, 8)]
    began = time.monotonic()
    outcomes = score_once(reward, *groups, max_failed_share=1.0, workers=workers)
    took_s = time.monotonic() - began
    for order, outcome in zip(orders, outcomes, strict=True):
        if order.startswith("score"):
            assert outcome == float(order.removeprefix("score"))
        elif order in ("die", "kill"):
            assert isinstance(outcome, Failed)
        else:
            assert outcome == hung
    assert took_s < 20 * (budget_s or deadline_s) / workers + 6.0, "the waits go on side by side"


def test_answers_that_are_only_looked_at_may_fail_in_any_number(caplog: pytest.LogCaptureFixture) -> None:
    with scorer(planned("by_text")) as made:
        scoring = made.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
        scoring.add(group(["raise it"]))
        (one,) = scoring.finish(watched=False)
    assert isinstance(one.outcomes["by_text"][0], Failed)
    assert caplog.records == []
