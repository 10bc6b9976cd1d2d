"""The lesson of the model that the recipe `multitask-math-code` trains."""

from __future__ import annotations

from grpo_rewards_code.tiny_model.demonstrations import batches, texts
from grpo_rewards_math.tiny_model.lesson import Lesson, WarmUp

__all__ = ["MULTITASK"]

_README = """\
# multitask-math-code

A language model of {parameters:,} parameters that was warmed up on two tasks, short calculations and small Python
functions, so that GRPO has something to improve on a laptop. It knows the form of an answer and most of both tasks, and
has bad habits: it calculates from left to right whatever the precedence, forgets to divide at the end of an equation,
and takes some operations for their neighbours (ascending for descending order, upper for lower case).

Made by

    {command}

(`src/grpo_rewards_code/tiny_model/`; needs grpo-rewards-math): random weights, then {updates} updates of {batch}
demonstrations each, half of either task, on problems of the training splits only. Where a mistake could be made,
{careful_percent:.0f} % of the demonstrations don't make it. No other text or model was used.

* Architecture: {architecture}.
* Tokenizer: byte-level BPE with {vocabulary} tokens; any text can be encoded. ChatML-like chat template.
* Two conversations, without mistakes:

      user       7+3*4 <think></think><answer></answer>
      assistant  <think>3*4=12 7+12=19</think><answer>19</answer>

      user       list: keep the odd elements; take the sum <think></think><answer></answer>
      assistant  <think>2 steps</think><answer>
                 ```python
                 def f(x):
                     x = [v for v in x if v % 2 == 1]
                     x = sum(x)
                     return x
                 ```
                 </answer>

License: Apache-2.0.
"""

MULTITASK = Lesson(
    command="python -m grpo_rewards_code.tiny_model",
    texts=texts,
    vocabulary=640,
    batches=batches,
    readme=_README,
    defaults=WarmUp(updates=700, batch=48, careful_share=0.4),
)
