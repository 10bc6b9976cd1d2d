"""The fingerprint changes with the data, and with nothing else."""

from __future__ import annotations

import datetime

import pytest
import torch

from grpo_core.data.fingerprint import fingerprint
from grpo_core.types import ImageRef, Message, Sample


def sample(
    content: str = "6*7?", *, images: tuple[ImageRef, ...] = (), id: str = "train-000000", **columns: object
) -> Sample:
    return Sample(messages=(Message(role="user", content=content),), columns=columns, images=images, id=id)


def test_equal_samples_have_equal_fingerprints_whatever_the_order_of_their_columns() -> None:
    assert fingerprint([sample(a=1, b=[2, {"c": None}])]) == fingerprint([sample(b=[2, {"c": None}], a=1)])


@pytest.mark.parametrize(
    "changed",
    [
        sample("6*8?"),
        sample(id="train-000001"),
        sample(solution="42"),
        sample(images=(ImageRef(source="a.png"),)),
        sample(images=(ImageRef(source=b"a.png"),)),
    ],
)
def test_any_change_of_a_sample_changes_it(changed: Sample) -> None:
    assert fingerprint([changed]) != fingerprint([sample()])


def test_the_order_of_samples_counts() -> None:
    one, two = sample("a"), sample("b")
    assert fingerprint([one, two]) != fingerprint([two, one])


@pytest.mark.parametrize(
    ("one", "two"),
    [("1", 1), (1, 1.5), (True, "true"), (None, "None"), ({1, 2}, [1, 2]), (b"x", "x"), ({1: 2}, {"1": 2})],
)
def test_values_of_different_types_are_different(one: object, two: object) -> None:
    assert fingerprint([sample(x=one)]) != fingerprint([sample(x=two)])


@pytest.mark.parametrize(
    "value", [torch.tensor([1, 2]), datetime.date(2024, 1, 1), {"b", "a"}, b"\x00\xff", "\ud800", (1, 2), float("inf")]
)
def test_values_that_json_does_not_know_have_one_too(value: object) -> None:
    assert fingerprint([sample(x=value)]) == fingerprint([sample(x=value)])
