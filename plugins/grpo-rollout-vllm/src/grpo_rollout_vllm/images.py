"""Images on their way to vLLM: once a group, beside the prompt with one placeholder for each.

vLLM runs the model's processor itself and puts the tokens of an image in place of its placeholder. It is given every
image on the processor's own grid already, so that it resizes none, and what it made of the prompt is compared with what
the trainer has.

Place in the flow: request → **images** → answers, colocated.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grpo_core.api import RolloutError, RolloutRequest
from grpo_core.backends import ModelSettings
from grpo_core.model.pixels import digest
from grpo_core.model.vision import Vision, load_vision
from grpo_core.types.sample import image_count

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PromptImages", "processor_arguments", "require_same_prompt"]

_NEVER = -100.0
"""vLLM's lowest bias of a logit. Log-probabilities are of the logits before it."""


class PromptImages:
    """What vLLM is told of the images of prompts."""

    def __init__(self, model: ModelSettings) -> None:
        self._vision: Vision | None = load_vision(model)

    @property
    def are_read(self) -> bool:
        """Whether the model reads images."""
        return self._vision is not None

    def sampling(self) -> dict[str, Any]:
        """Sampling parameters that keep the tokens that stand for images out of completions."""
        if self._vision is None:
            return {}
        return {"logit_bias": dict.fromkeys(sorted(self._vision.reserved_ids), _NEVER)}

    def body(self, request: RolloutRequest) -> dict[str, Any]:
        """The prompt for a server: its tokens, and its images as PNG."""
        if not request.sample.images:
            return {"token_ids": list(request.prompt_ids)}
        parts = [
            {"type": "image_url", "url": f"data:image/png;base64,{base64.b64encode(_png(image)).decode()}", "uuid": key}
            for key, image in self._opened(request)
        ]
        return {"token_ids": list(request.bare_prompt_ids), "content_parts": parts, "return_token_ids": True}

    def prompt(self, request: RolloutRequest) -> dict[str, Any]:
        """The prompt for an engine in this process."""
        if not request.sample.images:
            return {"prompt_token_ids": list(request.prompt_ids)}
        opened = self._opened(request)
        return {
            "prompt_token_ids": list(request.bare_prompt_ids),
            "multi_modal_data": {"image": [image for _, image in opened]},
            "multi_modal_uuids": {"image": [key for key, _ in opened]},
        }

    def _opened(self, request: RolloutRequest) -> list[tuple[str, Image]]:
        """Each image, and what tells its content from any other."""
        if self._vision is None:
            raise RolloutError(
                f"sample {request.sample.id!r}: its prompt has images, and the model reads text only",
                hint="choose a vision-language model",
            )
        return [(digest(image), self._vision.resized(image)) for image in request.sample.images]


def processor_arguments(model: ModelSettings) -> dict[str, Any]:
    """What vLLM's processor is to be told, so that it makes of an image what the run's does: the bound of
    `model.max_pixels`; nothing where there is none."""
    if model.max_pixels is None:
        return {}
    vision = load_vision(model)
    return {} if vision is None else {"size": vision.image_size}


def require_same_prompt(request: RolloutRequest, found: Sequence[int] | None, whose: str) -> None:
    """Raise `RolloutError` unless vLLM made the same tokens of a prompt with images as the run did."""
    if not request.sample.images or tuple(found or ()) == request.prompt_ids:
        return
    raise RolloutError(
        f"sample {request.sample.id!r}: {whose} makes {len(found or ())} tokens of its prompt with "
        f"{image_count(len(request.sample.images))}, and the run makes {len(request.prompt_ids)}",
        hint="the two must process images alike: the same model files and the same transformers on both sides, and the "
        "run's model.max_pixels for servers too (grpoctl rollout --recipe, or --mm-processor-kwargs)",
    )


def _png(image: Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", compress_level=1)
    return file.getvalue()
