"""What a loss name means: surrogate, ratio level and denominator. No torch, so that a recipe is checked without it.

With r the ratio policy / old policy, A the advantage of a completion, |o| its tokens in the loss, N the completions and
Σ|o| the tokens of the whole optimiser update, L the length limit:

    surrogate    clip      min(r A, clip(r, 1 - low, 1 + high) A); for A < 0 at least c A with dual clip
                 cispo     stop_gradient(clip(r, 1 - low, cap)) A log π
                 sapo      sigmoid(τ (r - 1)) 4/τ A, with τ chosen by the sign of A
    ratio        token     r of each token
                 sequence  exp(mean of log r over the completion), the same for all its tokens
    denominator  sequence  |o| N: completions weigh the same, whatever their length
                 token     Σ|o|: tokens weigh the same
                 constant  L N: tokens weigh the same, and weigh the same in every update

`problems` and `warnings` say which combinations of settings cannot work or do nothing. What is not here: the tensors
(surrogate.py) and the sum of all terms (loss.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from grpo_core.recipe.schema import AdvantageSettings, ObjectiveSettings

__all__ = ["PRESETS", "Denominator", "Loss", "RatioLevel", "Surrogate", "problems", "resolve", "warnings"]

Surrogate = Literal["clip", "cispo", "sapo"]
RatioLevel = Literal["token", "sequence"]
Denominator = Literal["sequence", "token", "constant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A policy loss with every number filled in."""

    source: str
    """Paper, and equation or section."""
    surrogate: Surrogate
    """What stands for the policy gradient."""
    ratio: RatioLevel = "token"
    """Whose ratio is taken."""
    denominator: Denominator = "token"
    """What the sum over tokens is divided by."""
    lowest: float = 0.0
    """The least a ratio counts; 0 bounds nothing."""
    highest: float = float("inf")
    """The most a ratio counts."""
    dual_clip: float | None = None
    """The most a ratio counts where A < 0; None: no bound. `clip` only."""
    temperature_positive: float = 1.0
    """τ where A > 0. `sapo` only."""
    temperature_negative: float = 1.05
    """τ where A <= 0. `sapo` only."""


_DAPO = Loss(
    source="DAPO, arXiv 2503.14476, eq. 8; clip range of §3.1",
    surrogate="clip",
    denominator="token",
    lowest=0.8,
    highest=1.28,
)

PRESETS: Mapping[str, Loss] = MappingProxyType(
    {
        "grpo": Loss(
            source="DeepSeekMath, arXiv 2402.03300, eq. 3; clip range of PPO, arXiv 1707.06347",
            surrogate="clip",
            denominator="sequence",
            lowest=0.8,
            highest=1.2,
        ),
        "dr_grpo": Loss(
            source="Dr. GRPO, arXiv 2503.20783, §3.2",
            surrogate="clip",
            denominator="constant",
            lowest=0.8,
            highest=1.2,
        ),
        "dapo": _DAPO,
        "bnpo": _DAPO,
        "cispo": Loss(
            source="MiniMax-M1, arXiv 2506.13585, §3.1; cap as in ScaleRL, arXiv 2510.13786",
            surrogate="cispo",
            denominator="token",
            highest=5.0,
        ),
        "sapo": Loss(
            source="SAPO, arXiv 2511.20347, §3",
            surrogate="sapo",
            denominator="sequence",
        ),
        "gspo": Loss(
            source="GSPO, arXiv 2507.18071, eq. 5 and 7; clip range of §5.1",
            surrogate="clip",
            ratio="sequence",
            denominator="sequence",
            lowest=1 - 3e-4,
            highest=1 + 4e-4,
        ),
    }
)
"""Every loss a recipe can name. `bnpo` is `dapo`: it divides by the tokens of a micro-batch, which are those of the
update once the denominator does not depend on how the update is cut."""


def resolve(settings: ObjectiveSettings) -> Loss:
    """The preset with the settings that were given put in; those without a meaning for it are left out."""
    loss = PRESETS[settings.loss]
    if loss.surrogate == "sapo":
        return replace(
            loss,
            temperature_positive=settings.sapo_temperature_positive,
            temperature_negative=settings.sapo_temperature_negative,
        )
    if settings.clip_low is not None:
        loss = replace(loss, lowest=max(0.0, 1 - settings.clip_low))
    if settings.clip_high is not None:
        is_cap = loss.surrogate == "cispo"
        loss = replace(loss, highest=settings.clip_high if is_cap else 1 + settings.clip_high)
    return replace(loss, dual_clip=settings.dual_clip) if loss.surrogate == "clip" else loss


def problems(settings: ObjectiveSettings) -> list[str]:
    """Why a run with these settings is refused; empty when it is not."""
    return list(_problems(settings))


def _problems(settings: ObjectiveSettings) -> Iterator[str]:
    if settings.beta > 0 and settings.kl_in == "loss" and settings.kl_estimator == "k1":
        yield (
            "kl_estimator k1 with kl_in loss: on-policy the expected gradient of log policy - log reference is zero, "
            "so beta would do nothing but add noise; use k2 or k3, or kl_in: reward"
        )
    if settings.importance.correction.endswith("mask") and settings.importance.cap == 1:
        yield (
            f"importance.cap 1 with correction {settings.importance.correction} leaves out everything whose weight is "
            "not exactly 1; use a cap above 1"
        )


def warnings(
    settings: ObjectiveSettings, *, updates_per_step: int, advantage: AdvantageSettings | None = None
) -> list[str]:
    """What in these settings does nothing, or not what one would think; empty when all is well.

    `updates_per_step` is num_iterations x minibatches; `advantage` adds what only shows beside the loss.
    """
    found = [*_clip_warnings(settings, updates_per_step), *_kl_warnings(settings), *_filter_warnings(settings)]
    if advantage is not None and settings.loss == "dr_grpo" and _divides_by_group_std(advantage):
        found.append(
            "loss dr_grpo with advantage.scale std is half of Dr. GRPO: dividing by the group's standard deviation is "
            "the other bias it removes; set advantage.scale to none"
        )
    return found


def _divides_by_group_std(advantage: AdvantageSettings) -> bool:
    return advantage.estimator == "group_mean" and advantage.scale == "std"


def _clip_warnings(settings: ObjectiveSettings, updates_per_step: int) -> Iterator[str]:
    loss = resolve(settings)
    given = [name for name in ("clip_low", "clip_high", "dual_clip") if getattr(settings, name) is not None]
    idle = given if loss.surrogate == "sapo" else [n for n in given if n == "dual_clip" and loss.surrogate != "clip"]
    for name in idle:
        yield f"{name} has no effect with loss {settings.loss}, which does not clip that way"
    if loss.surrogate == "cispo" and loss.highest <= 1:
        yield (
            f"clip_high {loss.highest:g} with loss cispo: it caps the ratio itself, so nearly every token gets the "
            f"constant weight {loss.highest:g}; use 5, or leave it out"
        )
    elif updates_per_step == 1 and set(given) - set(idle):
        yield (
            f"{', '.join(name for name in given if name not in idle)} without effect: with one update per step the "
            "ratio is exactly 1; they matter with num_iterations or minibatches above 1"
        )
    if loss.surrogate == "clip" and loss.dual_clip is not None and loss.dual_clip <= loss.highest:
        yield (
            f"dual_clip {loss.dual_clip:g} is not above the clip range's upper end {loss.highest:g}: it takes the "
            "gradient of bad completions where good ones still have theirs; 3 is usual"
        )
    if loss.surrogate != "sapo" and settings.clip_low is not None and settings.clip_low >= 1:
        yield f"clip_low {settings.clip_low:g} bounds nothing: no ratio is below {1 - settings.clip_low:g}"


def _kl_warnings(settings: ObjectiveSettings) -> Iterator[str]:
    if settings.beta == 0 and settings.kl_in == "reward":
        yield "kl_in has no effect while beta is 0"
    if settings.beta > 0 and settings.kl_in == "reward" and settings.kl_estimator != "k1":
        yield (
            f"kl_estimator {settings.kl_estimator} with kl_in reward does not follow the gradient of the KL "
            "divergence; in the reward k1 does"
        )


def _filter_warnings(settings: ObjectiveSettings) -> Iterator[str]:
    filters = settings.top_entropy_share < 1
    if filters and resolve(settings).ratio == "sequence":
        yield (
            f"top_entropy_share {settings.top_entropy_share:g} with loss {settings.loss} picks no tokens: the ratio is "
            "one for the whole completion, whose loss is only scaled by the share of tokens kept"
        )
    if filters and settings.entropy_bonus > 0:
        yield "top_entropy_share filters the policy term only: entropy_bonus still acts on all tokens"
    if settings.importance.correction.startswith("sequence") and settings.importance.cap >= 1.5:
        yield (
            f"importance.cap {settings.importance.cap:g} with correction {settings.importance.correction} hardly ever "
            "acts: the geometric mean over a completion rarely leaves 0.9 to 1.1; use a cap close to 1, such as 1.05"
        )
    defaults = ObjectiveSettings()
    if settings.loss != "sapo" and (
        settings.sapo_temperature_positive != defaults.sapo_temperature_positive
        or settings.sapo_temperature_negative != defaults.sapo_temperature_negative
    ):
        yield f"sapo_temperature_* have no effect with loss {settings.loss}"
