"""The lesson of the model that the recipe `countdown-tiny` trains."""

from __future__ import annotations

from grpo_rewards_math.tiny_model.demonstrations import batches
from grpo_rewards_math.tiny_model.lesson import Lesson, WarmUp
from grpo_rewards_math.tiny_model.tokenizer import countdown_texts

__all__ = ["COUNTDOWN"]

_README = """\
# countdown-tiny

A language model of {parameters:,} parameters that was warmed up on Countdown with three numbers, so that GRPO has
something to improve on a laptop. It knows the form of an answer and some arithmetic; it often misses the target,
because it likes to add everything up.

Made by

    {command}

(`src/grpo_rewards_math/tiny_model/`): random weights, then {updates} updates of {batch} demonstrations each, on
problems of the training split only. {careful_percent:.0f} % of the demonstrations solve their problem; the others
add the numbers up, whatever the target. No other text or model was used.

* Architecture: {architecture}.
* Tokenizer: byte-level BPE with {vocabulary} tokens; any text can be encoded. ChatML-like chat template.
* Numbers up to 12, operations + - *. A conversation:

      user       5 11 2 = 57 <think></think><answer></answer>
      assistant  <think>11*5=55 55+2=57</think><answer>11*5+2</answer>

License: Apache-2.0.
"""

COUNTDOWN = Lesson(
    command="python -m grpo_rewards_math.tiny_model",
    texts=countdown_texts,
    vocabulary=512,
    batches=batches,
    readme=_README,
    defaults=WarmUp(),
)
