"""Completions that hold a token which stands for an image are not trained on."""

from __future__ import annotations

from dataclasses import replace

from grpo_core.loop.batches import train_group
from grpo_core.loop.facts import learn
from grpo_core.loop.metrics import placeholder_metrics
from grpo_core.loop.placeholders import has_placeholder, without_placeholders
from grpo_core.loop.shares import Piece
from grpo_core.ranks.ranks import ALONE
from tests.core.loop.make import completion, scored_group

RESERVED = frozenset({3, 7})


def test_a_completion_ends_for_the_trainer_before_the_first_token_that_stands_for_an_image() -> None:
    fine, late, early = completion(3), completion(6), replace(completion(2), token_ids=(7, 1))
    assert [has_placeholder(each, RESERVED) for each in (fine, late, early)] == [False, True, True]
    assert [without_placeholders(each, RESERVED) for each in (fine, late, early)] == [3, 3, 0]
    scored = scored_group([1.0, 0.0, 0.5], completions=[fine, late, early])
    members = train_group(scored.group, [True, False, False], RESERVED).members
    assert [member.token_ids for member in members] == [(0, 1, 2), (0, 1, 2), ()]
    assert [len(member.sampling_logprobs) for member in members] == [3, 3, 0]
    assert placeholder_metrics([scored], RESERVED) == {"completions/placeholders": 2.0}


def test_every_rank_hears_of_such_completions_and_of_visual_tokens() -> None:
    scored = scored_group([1.0, 0.0], completions=[completion(3), completion(5)])
    request = replace(scored.group.request, prompt_ids=(1, 7, 7, 2))
    scored = replace(scored, group=replace(scored.group, request=request))
    (facts,) = learn(ALONE, {Piece(0, 0, 2): scored}, RESERVED).groups
    assert (facts.unreadable, facts.visual_tokens) == ((False, True), 2)
    (facts,) = learn(ALONE, {Piece(0, 0, 2): scored}).groups
    assert (facts.unreadable, facts.visual_tokens) == ((False, False), 0)


def test_a_model_of_text_alone_has_no_such_metric() -> None:
    assert placeholder_metrics([scored_group([1.0])], frozenset()) == {}
