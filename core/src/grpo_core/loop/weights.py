"""The only arrow that points back: the trainer's weights on their way to the rollout engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from grpo_core.protocols import LoadsAdapters, RolloutBackend, SharesWeights, TrainerBackend

__all__ = ["WeightSync"]


class WeightSync:
    """Brings the engine to the trainer's weights; an engine that has a version already is not sent it again."""

    def __init__(
        self,
        trainer: TrainerBackend,
        rollout: RolloutBackend,
        route: Literal["shared", "stream"],
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        """`settle` waits until no rank's engine generates with the weights that it has."""
        self._trainer = trainer
        self._rollout = rollout
        self._route = route
        self._settle = settle
        self._version: int | None = None

    def to(self, version: int) -> None:
        """Make the engine generate with the weights after `version` optimiser updates."""
        if self._route == "shared":  # every time: the trainer may have spread its weights meanwhile
            cast(SharesWeights, self._rollout).share(self._trainer.module(), version)
        elif version != self._version:
            self._settle()
            export = getattr(self._trainer, "export_adapter", None)
            if export is not None and getattr(self._rollout, "takes_adapter", False):
                cast(LoadsAdapters, self._rollout).load_adapter(export, version)
            else:
                self._rollout.load_weights(self._trainer.iter_weights(), version)
        self._version = version

    def rest(self) -> None:
        """Let an engine that can make room do so, as the trainer is about to compute."""
        rest = getattr(self._rollout, "rest", None)
        if self._route == "stream" and rest is not None:
            rest()
            self._version = None
