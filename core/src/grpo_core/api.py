"""The one module a plugin author imports: the hook marker, specs, data types, protocols and errors.

Light: it imports neither torch nor transformers nor datasets. Authors of rollout and trainer backends find the
settings and the objective in `grpo_core.backends`.
"""

from grpo_core.errors import DataError, GrpoError, PluginError, RewardError, RolloutError, TrainerError
from grpo_core.plugins.hookspecs import hookimpl
from grpo_core.plugins.specs import DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec, TrackerSpec, TrainerSpec
from grpo_core.protocols import (
    DescribedReward,
    Preprocessor,
    RewardFunction,
    RolloutBackend,
    RolloutServer,
    RowSource,
    SharesWeights,
    TrainerBackend,
)
from grpo_core.types import (
    BuildContext,
    Completion,
    EvaluationReport,
    FinishReason,
    ImageRef,
    Message,
    RolloutGroup,
    RolloutRequest,
    RunOutcome,
    RunStarted,
    Sample,
    SamplingParams,
    ScoredGroup,
    StepReport,
    TokenStats,
    TrainBatch,
    TrainGroup,
    TrainMember,
    UpdateReport,
)

__all__ = [
    "BuildContext",
    "Completion",
    "DataError",
    "DatasetSpec",
    "DescribedReward",
    "EvaluationReport",
    "FinishReason",
    "GrpoError",
    "ImageRef",
    "Message",
    "PluginError",
    "Preprocessor",
    "RecipeSpec",
    "RewardError",
    "RewardFunction",
    "RewardSpec",
    "RolloutBackend",
    "RolloutError",
    "RolloutGroup",
    "RolloutRequest",
    "RolloutServer",
    "RolloutSpec",
    "RowSource",
    "RunOutcome",
    "RunStarted",
    "Sample",
    "SamplingParams",
    "ScoredGroup",
    "SharesWeights",
    "StepReport",
    "TokenStats",
    "TrackerSpec",
    "TrainBatch",
    "TrainGroup",
    "TrainMember",
    "TrainerBackend",
    "TrainerError",
    "TrainerSpec",
    "UpdateReport",
    "hookimpl",
]
