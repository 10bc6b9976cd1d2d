"""Weights reach the engine once a version, and again after it gave its memory away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
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


class TrainerOfAdapters(Trainer):
    def export_adapter(self, directory: Path) -> None:
        (directory / "adapter").write_text("a", encoding="utf-8")


class EngineWithAdapters(Engine):
    takes_adapter = True

    def load_adapter(self, write: Callable[[Path], None], version: int) -> None:
        self.calls.append(("adapter", version))


def sync_of(engine: Engine, trainer: Trainer | None = None) -> WeightSync:
    return WeightSync(cast(TrainerBackend, trainer or Trainer()), cast(RolloutBackend, engine), "stream")


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


def test_an_engine_that_takes_adapters_gets_one_from_a_trainer_that_can_give_it() -> None:
    engine = EngineWithAdapters()
    sync_of(engine, TrainerOfAdapters()).to(1)
    sync_of(engine).to(2)  # this trainer has merged weights only
    engine.takes_adapter = False
    sync_of(engine, TrainerOfAdapters()).to(3)
    assert engine.calls == [("adapter", 1), 2, 3]
