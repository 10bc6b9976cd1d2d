"""The frozen data that flows between the stages. Plain Python values: tensors appear in the trainer only."""

from grpo_core.types.batch import LogprobSpace, TokenStats, TrainBatch, TrainGroup, TrainMember, UpdateReport
from grpo_core.types.context import BuildContext
from grpo_core.types.report import EvaluationReport, RunOutcome, RunStarted, StepReport
from grpo_core.types.rollout import Completion, FinishReason, RolloutGroup, RolloutRequest, SamplingParams
from grpo_core.types.sample import ImageRef, Message, Sample
from grpo_core.types.scored import Failed, Outcome, ScoredGroup

__all__ = [
    "BuildContext",
    "Completion",
    "EvaluationReport",
    "Failed",
    "FinishReason",
    "ImageRef",
    "LogprobSpace",
    "Message",
    "Outcome",
    "RolloutGroup",
    "RolloutRequest",
    "RunOutcome",
    "RunStarted",
    "Sample",
    "SamplingParams",
    "ScoredGroup",
    "StepReport",
    "TokenStats",
    "TrainBatch",
    "TrainGroup",
    "TrainMember",
    "UpdateReport",
]
