"""Weights reach the engine once a version, and again after it gave its memory away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from grpo_core.loop.weights import WeightSync
from grpo_core.protocols import RolloutBackend, TrainerBackend


class Trainer:
    def iter_weights(self) -> Iterable[tuple[str, Any]]:
        return iter(())


class Engine:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def load_weights(self, stream: Iterable[tuple[str, Any]], version: int) -> None:
        self.calls.append(version)


class RestingEngine(Engine):
    def rest(self) -> None:
        self.calls.append("rest")


def sync_of(engine: Engine) -> WeightSync:
    return WeightSync(cast(TrainerBackend, Trainer()), cast(RolloutBackend, engine), "stream")


def test_an_engine_that_has_a_version_is_not_sent_it_again() -> None:
    engine = Engine()
    sync = sync_of(engine)
    for version in (0, 0, 1):
        sync.to(version)
        sync.rest()
    assert engine.calls == [0, 1]


def test_an_engine_that_rested_is_sent_everything_and_one_that_generates_twice_is_not() -> None:
    engine = RestingEngine()
    sync = sync_of(engine)
    sync.to(0)
    sync.rest()
    sync.to(1)  # evaluation after the update
    sync.to(1)  # the next step's rollout
    sync.rest()
    assert engine.calls == [0, "rest", 1, "rest"]
