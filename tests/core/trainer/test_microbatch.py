"""Packing under the token budget, and the tensors of a micro-batch, by hand."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.objective.logprobs import TokenLogprobs
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.trainer.microbatch import collate
from grpo_core.trainer.rounds import pack
from grpo_core.trainer.rows import DUMMY, Row, rows_for_loss, rows_of
from grpo_core.types import TrainMember
from tests.core.trainer.batches import make_batch

CPU = torch.device("cpu")


def row(prompt: int, completion: int, index: int = 0, **member: Any) -> Row:
    """A row whose prompt is 10, 11, … and whose completion is 20, 21, …"""
    tokens = tuple(range(20, 20 + completion))
    values = {"advantage": 1.0, "sampling_logprobs": tuple(-float(token) for token in tokens), **member}
    return Row(
        group=0,
        index=index,
        prompt_ids=tuple(range(10, 10 + prompt)),
        member=TrainMember(token_ids=tokens, **values),
    )


def test_rows_are_packed_longest_first_under_the_padded_budget() -> None:
    rows = [row(1, length, index) for index, length in enumerate([2, 8, 3, 5, 4])]
    lengths = [[one.length for one in rows] for rows in pack(rows, budget_tokens=10)]
    assert lengths == [[8], [5, 4], [3, 2]]


def test_a_row_longer_than_the_budget_goes_alone() -> None:
    assert [len(rows) for rows in pack([row(1, 9), row(1, 9), row(1, 1)], budget_tokens=5)] == [1, 1, 1]


def test_without_rows_there_is_the_dummy() -> None:
    assert pack([], budget_tokens=5) == [(DUMMY,)]


@given(lengths=st.lists(st.integers(1, 30), max_size=20), budget=st.integers(1, 100))
def test_every_row_is_packed_once_and_no_pack_exceeds_the_budget(lengths: list[int], budget: int) -> None:
    rows = [row(2, length, index) for index, length in enumerate(lengths)]
    packs = pack(rows, budget)
    assert packs == pack(rows, budget)
    if rows:
        assert sorted(one.index for rows in packs for one in rows) == list(range(len(lengths)))
    for packed in packs:
        assert len(packed) == 1 or len(packed) * max(one.length for one in packed) <= budget


def test_inputs_end_before_the_last_token_and_pick_what_predicts_each_token() -> None:
    inputs = collate([row(2, 3), row(1, 2)], CPU).inputs
    assert inputs.input_ids_BT.tolist() == [[10, 11, 20, 21], [10, 20, 0, 0]]
    assert inputs.position_ids.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert inputs.picked_N.tolist() == [1, 2, 3, 4, 5]
    assert inputs.targets_N.tolist() == [20, 21, 22, 20, 21]


def test_masks_tell_tokens_from_padding_and_rows_in_the_loss_from_others() -> None:
    micro = collate([row(2, 3), row(1, 2, in_loss=False)], CPU)
    assert micro.tokens_BC.tolist() == [[True, True, True], [True, True, False]]
    assert micro.mask_BC.tolist() == [[True, True, True], [False, False, False]]
    assert micro.sampling_logprobs_BC.tolist() == [[-20, -21, -22], [-20, -21, 0]]
    assert micro.slots == 8


def test_numbers_of_tokens_are_spread_row_by_row() -> None:
    micro = collate([row(2, 2), row(1, 3)], CPU)
    assert micro.spread(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).tolist() == [[1, 2, 0], [3, 4, 5]]


def test_optional_numbers_are_there_when_every_row_has_them() -> None:
    full = collate([row(1, 2, old_logprobs=(-1.0, -2.0), policy_mask=(True, False))], CPU)
    assert full.old_logprobs_BC is not None
    assert full.old_logprobs_BC.tolist() == [[-1, -2]]
    assert full.policy_mask_BC is not None
    assert full.policy_mask_BC.tolist() == [[True, False]]
    assert full.reference_logprobs_BC is None


def test_raw_logprobs_of_the_policy_are_the_correction_unless_older_ones_came_with_the_batch() -> None:
    computed = TokenLogprobs(torch.tensor([-1.0]), torch.tensor([0.5]), torch.tensor([-3.0]))
    current = collate([row(1, 1)], CPU).loss_inputs(computed).correction_logprobs_BT
    older = collate([row(1, 1, correction_logprobs=(-4.0,))], CPU).loss_inputs(computed).correction_logprobs_BT
    assert current is not None
    assert current.tolist() == [[-3]]
    assert older is not None
    assert older.tolist() == [[-4]]


def test_rows_out_of_the_loss_and_without_signal_are_left_out_unless_kl_or_entropy_needs_them() -> None:
    batch = make_batch(groups=3, members=4, signal_free=(1,))
    assert len(rows_of(batch)) == 12

    def kept(**objective: Any) -> tuple[int, int]:
        rows, skipped = rows_for_loss(batch, ObjectiveSettings(**objective))
        return len(rows), skipped

    assert kept() == (7, 4)
    assert kept(beta=0.1, kl_in="reward") == (7, 4)
    assert kept(beta=0.1) == (11, 0)
    assert kept(entropy_bonus=0.1) == (11, 0)
