"""Micro-batches that share a call of the vision tower."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from grpo_core.trainer.rounds import Round, pack, plan_rounds, shared_tokens
from grpo_core.trainer.rows import DUMMY, Row
from grpo_core.types import ImageRef, TrainMember

PICTURE = (ImageRef(source="a.png"),)


def row(group: int, index: int, tokens: int, has_image: bool, prompt: int = 10) -> Row:
    member = TrainMember(token_ids=(1,) * tokens, advantage=1.0, sampling_logprobs=(-1.0,) * tokens)
    return Row(group=group, index=index, prompt_ids=(1,) * prompt, member=member, images=PICTURE if has_image else ())


def shape(rounds: Sequence[Round]) -> list[tuple[bool, list[list[tuple[int, int]]]]]:
    return [(each.has_images, [[(one.group, one.index) for one in rows] for rows in each.packs]) for each in rounds]


def test_groups_with_images_share_a_micro_batch_while_they_fit_and_text_is_behind_them() -> None:
    rows = [
        *(row(0, m, tokens, True) for m, tokens in enumerate((1, 5))),
        row(1, 0, 3, False),
        *(row(2, m, 3, True) for m in range(2)),
        *(row(3, m, 2, True) for m in range(2)),
    ]
    # The longest rows have 10 + 5 - 1 tokens: four of them are 56.
    assert shape(plan_rounds(rows, 56)) == [
        (True, [[(0, 1), (0, 0), (2, 0), (2, 1)]]),
        (True, [[(3, 0), (3, 1)]]),
        (False, [[(1, 0)]]),
    ]


def test_a_group_that_does_not_fit_is_several_micro_batches_of_one_round() -> None:
    rows = [*(row(0, m, 11, True) for m in range(3)), row(1, 0, 1, True)]
    assert shape(plan_rounds(rows, 40)) == [(True, [[(0, 0), (0, 1)], [(0, 2)]]), (True, [[(1, 0)]])]
    assert [each.groups for each in plan_rounds(rows, 40)] == [(0,), (1,)]


def test_nothing_to_forward_is_one_dummy() -> None:
    assert plan_rounds([], 5) == [Round(packs=((DUMMY,),))]
    assert plan_rounds([], 5)[0].groups == ()


GROUPS = st.lists(st.tuples(st.booleans(), st.lists(st.integers(1, 30), min_size=1, max_size=5)), max_size=6)


@given(GROUPS, st.integers(1, 300))
def test_every_row_is_there_once_within_the_budget_and_a_group_in_one_round(
    groups: list[tuple[bool, list[int]]], budget: int
) -> None:
    rows = [row(g, m, n, has_image) for g, (has_image, sizes) in enumerate(groups) for m, n in enumerate(sizes)]
    rounds = plan_rounds(rows, budget)
    packed = [one for each in rounds for rows_ in each.packs for one in rows_ if one is not DUMMY]
    assert sorted(packed, key=lambda one: (one.group, one.index)) == rows
    for each in rounds:
        for rows_ in each.packs:
            assert len(rows_) == 1 or len(rows_) * max(one.length for one in rows_) <= budget
            assert all(bool(one.images) == each.has_images for one in rows_)
    encoded = [group for each in rounds for group in each.groups]
    assert len(encoded) == len(set(encoded))
    assert all(len(each.packs) == 1 or len(each.groups) == 1 for each in rounds if each.has_images)


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 200))
def test_text_is_packed_as_if_there_were_no_images(sizes: list[int], budget: int) -> None:
    text = [row(g, 0, n, False) for g, n in enumerate(sizes)]
    assert plan_rounds(text, budget) == [Round(packs=tuple(pack(text, budget)))]
    mixed = plan_rounds([*text, row(99, 0, 7, True)], budget)
    assert [each for each in mixed if not each.has_images] == (plan_rounds(text, budget) if text else [])


def test_groups_that_share_their_prompts_fill_a_micro_batch_by_what_is_forwarded() -> None:
    rows = [*(row(0, m, 11, False) for m in range(3)), *(row(1, m, 6, False) for m in range(2))]
    # Prompts of 10 once: 10 + 3 * 10 tokens, and 10 + 2 * 5.
    assert shared_tokens(rows) == 60
    (whole,) = plan_rounds(rows, 60, shared=True)
    assert whole == Round(packs=(tuple(rows),), is_shared=True)
    two = plan_rounds(rows, 59, shared=True)
    assert shape(two) == [(False, [[(0, 0), (0, 1), (0, 2)], [(1, 0), (1, 1)]])]
    # The first group fits no more: its prompt is forwarded twice.
    assert shape(plan_rounds(rows, 39, shared=True)) == [(False, [[(0, 0), (0, 1)], [(0, 2)], [(1, 0), (1, 1)]])]


@given(GROUPS, st.integers(1, 300))
def test_shared_prompts_are_forwarded_once_wherever_their_group_fits(
    groups: list[tuple[bool, list[int]]], budget: int
) -> None:
    rows = [row(g, m, n, has_image) for g, (has_image, sizes) in enumerate(groups) for m, n in enumerate(sizes)]
    rounds = plan_rounds(rows, budget, shared=True)
    packs = [rows_ for each in rounds for rows_ in each.packs if rows_ != (DUMMY,)]
    assert sorted((one for rows_ in packs for one in rows_), key=lambda one: (one.group, one.index)) == rows
    assert all(each.is_shared for each in rounds)
    for rows_ in packs:
        assert len(rows_) == 1 or shared_tokens(rows_) <= budget
        numbers = [one.group for one in rows_]
        assert numbers == [g for g in dict.fromkeys(numbers) for _ in range(numbers.count(g))], "groups are neighbours"
    for g in range(len(groups)):
        if shared_tokens([one for one in rows if one.group == g]) <= budget:
            assert sum(any(one.group == g for one in rows_) for rows_ in packs) == 1
    assert all(len(each.packs) == 1 or len(each.groups) == 1 for each in rounds if each.has_images)
