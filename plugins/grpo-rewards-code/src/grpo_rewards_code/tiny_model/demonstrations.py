"""What the tiny model is warmed up on: short calculations and small functions, half of each.

A careless calculation ignores precedence, or forgets the last step of an equation. A careless function takes one
operation for its neighbour: ascending order for descending, upper case for lower. A model that imitates both knows the
form of an answer and most of the tasks, mostly makes these mistakes where they can be made, and has something to learn
from rewards on either task.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random

from grpo_rewards_code.basics import source as code_source
from grpo_rewards_code.basics.function import Function, Step, program
from grpo_rewards_code.basics.operations import OPERATIONS
from grpo_rewards_code.basics.options import CodeBasicsOptions
from grpo_rewards_code.basics.wording import render as render_code
from grpo_rewards_math.basics import source as math_source
from grpo_rewards_math.basics.options import MathBasicsOptions
from grpo_rewards_math.basics.problem import Problem
from grpo_rewards_math.basics.wording import render as render_math
from grpo_rewards_math.tiny_model.lesson import Demonstration, WarmUp

__all__ = [
    "CODE",
    "MATH",
    "NEIGHBOURS",
    "batches",
    "code_answer",
    "demonstrate_code",
    "demonstrate_math",
    "math_answer",
    "texts",
]

MATH = MathBasicsOptions(kinds=("expression", "equation", "remainder"), max_value=9, style="short")
CODE = CodeBasicsOptions(max_steps=2, style="short")
"""What the model is warmed up for, and what the recipe trains it on."""

_POOL_PROBLEMS = 3_000
_CARELESS_KINDS = frozenset({"expression", "equation"})
NEIGHBOURS = {
    "subtract {n} from each element": "add {n} to each element",
    "keep the odd elements": "keep the even elements",
    "keep the elements below {n}": "keep the elements above {n}",
    "drop the first {n} elements": "keep the first {n} elements",
    "sort in descending order": "sort in ascending order",
    "take the smallest, or 0 if there is none": "take the largest, or 0 if there is none",
    "write it in lower case": "write it in upper case",
    "drop the first {n} characters": "keep the first {n} characters",
    "remove the vowels": "keep the vowels",
    "count the words": "count the characters",
    "subtract {n}": "add {n}",
    "change its sign": "take its absolute value",
    "take the smaller of it and {n}": "take the larger of it and {n}",
}
"""What is taken for what."""
_BY_WORDS = {operation.words: operation for operation in OPERATIONS}


def batches(settings: WarmUp) -> Iterator[list[Demonstration]]:
    """Batches of demonstrations on training problems of both tasks, without an end."""
    random = Random(settings.seed)
    calculations, functions = _pools(settings.seed)
    half, careful = settings.batch // 2, settings.careful_share
    while True:
        yield [
            *(demonstrate_math(each, careful, random) for each in random.choices(calculations, k=half)),
            *(demonstrate_code(each, careful, random) for each in random.choices(functions, k=settings.batch - half)),
        ]


@cache
def _pools(seed: int) -> tuple[list[Problem], list[Function]]:
    calculations = islice(math_source.problems(MATH, split="train", seed=seed), _POOL_PROBLEMS)
    functions = islice(code_source.problems(CODE, split="train", seed=seed), _POOL_PROBLEMS)
    return list(calculations), [each.function for each in functions]


def demonstrate_math(problem: Problem, careful_share: float, random: Random) -> Demonstration:
    """Calculate carefully, with the given probability, or carelessly."""
    careless = problem.kind in _CARELESS_KINDS and random.random() >= careful_share
    answer = math_answer(problem.mistaken if careless else problem.steps)
    return Demonstration(prompt=render_math(problem, MATH), answer=answer)


def demonstrate_code(function: Function, careful_share: float, random: Random) -> Demonstration:
    """Write the function; each step is taken for its neighbour where it has one, unless it is done with care."""
    steps = [step if random.random() < careful_share else _mistaken(step) for step in function.steps]
    return Demonstration(prompt=render_code(function, "call", CODE), answer=code_answer(steps))


def math_answer(steps: tuple[str, ...]) -> str:
    """The steps, and the value of the last one."""
    return f"<think>{' '.join(steps)}</think><answer>{steps[-1].rpartition('=')[2]}</answer>"


def code_answer(steps: list[Step]) -> str:
    """How many steps there are, and a line for each."""
    source = program([step.code for step in steps])
    return f"<think>{len(steps)} steps</think><answer>\n```python\n{source}\n```\n</answer>"


def texts() -> Iterator[str]:
    """Prompts and answers with every word of both tasks, for the tokenizer."""
    for style in ("full", "short"):
        math, code = MATH.model_copy(update={"style": style}), CODE.model_copy(update={"style": style})
        yield from (
            render_math(problem, math) for problem in islice(math_source.problems(MATH, split="train", seed=0), 8)
        )
        for operation in OPERATIONS:
            step = Step(operation=operation, n=operation.numbers and operation.numbers[0])
            yield from (render_code(Function(kind=kind, steps=(step, step)), "call", code) for kind in code.kinds)
            yield code_answer([step])


def _mistaken(step: Step) -> Step:
    operation = step.operation
    return Step(operation=_BY_WORDS[NEIGHBOURS.get(operation.words, operation.words)], n=step.n)
