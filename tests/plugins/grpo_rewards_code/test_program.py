"""The program in a completion: fences of any form, the last one, what counts as the answer, and linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.program.answer import answer_block, spoken_part
from grpo_rewards_code.program.fences import fences
from grpo_rewards_code.program.find import find_program
from grpo_rewards_code.program.usual_imports import with_usual_imports

CODE = "n = int(input())\nprint(n + 1)"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}\n```",
        f"```\n{CODE}\n```",
        f"~~~python\n{CODE}\n~~~",
        f"````python\n{CODE}\n````",
        f'```python title="a.py"\n{CODE}\n```',
        f"```{{.python .numberLines}}\n{CODE}\n```",
        f"```python3.11\n{CODE}\n```",
        f"```PY\n{CODE}\n```",
        f"```py3\n{CODE}\n```   ",
        f"``` python=\n{CODE}\n```",
        f"Here it is: ```python\n{CODE}\n```",
        f"```python\n{CODE}",
        f"```python\n{CODE}```",
        "1. So:\n   ```python\n   n = int(input())\n   print(n + 1)\n   ```",
        "   ```python\nn = int(input())\nprint(n + 1)\n   ```",
        f"\t```python\n{CODE}\n\t```",
        f"```python\n    {CODE.replace(chr(10), chr(10) + '    ')}\n```",
        f"<think>a</think><answer>```python\n{CODE}\n```</answer>",
        f"<think>a</think>\n<answer>\n```python\n{CODE}\n</answer>",
        f"<think>a</think>\n<answer>\n{CODE}\n</answer>",
        f"<answer>\n```python\n{CODE}\n```\n",
        f"<think>```python\nold()\n</think>```python\n{CODE}\n```",
        f"Sure.\n\n{CODE}\n\nThis adds one.",
        f"{CODE}\nIt's simple (see above).",
        f"\ufeff{CODE}",
        f"\ufeff```python\n\ufeff{CODE}\n```",
        f"Sure.\n\ufeff```python\n\ufeff{CODE}\n\ufeff```",
        f"<think>a</think>\ufeff<answer>\ufeff{CODE}</answer>",
        f"<think>a</think>\n<answer>\n\ufeff```\n\ufeff{CODE}\n```\n</answer>",
        f"\ufeff<think>a</think>\n\n\ufeff{CODE}",
        f"```python\r\n{CODE}\r\n```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"```code\n{CODE}\n```",
        f"```python\n{CODE}\n```<answer>\n",
        f"```python\n{CODE}\n``` <answer>See above.</answer>",
        "> ```python\n> n = int(input())\n> print(n + 1)\n> ```\n",
        "So:\n> ```python\n> n = int(input())\n>\n> print(n + 1)\n> ```".replace(">\n", ""),
        f"```python\n{CODE}\n```<|im_end|>",
        f"```python\n{CODE}\n``` <｜end▁of▁sentence｜>",
        f"```python\n{CODE}\n```</s>",
    ],
)
def test_the_program_is_found_in_any_usual_form(text: str) -> None:
    program = find_program(text)
    assert program is not None
    assert program.strip() == CODE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"```python\nprint(0)\n```\nBetter:\n```python\n{CODE}\n```", CODE),
        (f"```python\n{CODE}\n```\nOutput:\n```\n5\n6\n```", CODE),
        (f"```python\n{CODE}\n```\n```bash\npython a.py\n```", CODE),
        (f"```python\n{CODE}\n```\n```python\n>>> main()\n3\n```", CODE),
        (f"```\n{CODE}\n```\nFor example\n```\nabc\ncba\n```", CODE),
        (f"```python\nprint(0)\nno, wrong\n```python\n{CODE}\n```", CODE),
        ("```python\nprint(0)\n```\nI think that\n```python\nprint(1\n```", "print(1"),
        ("```python\ns = '''\n    ```\n'''\nprint(s)\n```", "s = '''\n    ```\n'''\nprint(s)"),
        ("````python\ns = '''\n```\n'''\nprint(s)\n````", "s = '''\n```\n'''\nprint(s)"),
        ("```python\nprint('<answer>7</answer> </think>')\n```", "print('<answer>7</answer> </think>')"),
        (f"<answer>\n```python\nprint(0)\n```\n</answer>\n<answer>\n```python\n{CODE}\n```\n</answer>", CODE),
        (f"```python\nprint(0)\n```\n<answer>\n```python\n{CODE}\n```\n</answer>", CODE),
        (f"```python\nprint(0)\n```<answer>```python\n{CODE}\n```</answer>", CODE),
        (f"```python\nprint(0)\n```<answer>\n{CODE}\n</answer>", CODE),
        ("````python\ns = '''\n```<answer>\n'''\n````<answer>", "s = '''\n```<answer>\n'''"),
        (f"<answer>\n```python\n{CODE}\n```\n</answer>\n```python\nprint(0)\n```", CODE),
    ],
)
def test_of_several_blocks_the_last_program_counts(text: str, expected: str) -> None:
    program = find_program(text)
    assert program is not None
    assert program.strip() == expected


def test_of_several_blocks_the_last_that_defines_what_the_tests_call_counts() -> None:
    text = (
        "```python\ndef f(x):\n    return 0\n```\n```python\ndef f(x):\n    return x\n```\n```python\nprint(f(3))\n```"
    )
    assert find_program(text, {"f"}) == "def f(x):\n    return x"
    assert find_program(text) == "print(f(3))"


HELPER = "```python\ndef sq(x): return x * x\n```\n"
MAIN = "```python\ndef f(x): return sq(x)\n```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HELPER + MAIN, "def sq(x): return x * x\ndef f(x): return sq(x)"),
        ("```python\nimport numpy as np\n```\n```python\ndef f(x): return np.abs(x)\n```", "import numpy as np\n"),
        (HELPER + "```python\nprint(1)\n```\n" + MAIN, "def sq(x): return x * x\ndef f(x): return sq(x)"),
        (HELPER + "```python\ndef f(x): return x\n```", "def f(x): return x"),
        (HELPER + "```python\ndef sq(x): return 1\ndef f(x): return sq(x)\n```", "def sq(x): return 1"),
        ("```python\nsq = make()\n```\n" + MAIN, "def f(x): return sq(x)"),
        ("```python\ndef sq(x): return (\n```\n" + MAIN, "def f(x): return sq(x)"),
    ],
)
def test_definitions_that_the_last_block_lacks_come_from_blocks_before_it(text: str, expected: str) -> None:
    program = find_program(text, {"f"})
    assert program is not None
    assert program.startswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "<think>cut off",
        "<think>```python\nprint(1)\n```",
        "I don't know.",
        "The answer is not clear to me. Perhaps (a) is right.",
        "```python\n\n```",
        "<answer></answer>",
        "<think>```python\nprint(1)\n```</think><think>```python\nprint(2)\n```</think><answer>No idea.</answer>",
    ],
)
def test_where_no_program_is_none_is_found(text: str) -> None:
    assert find_program(text) is None


def test_thinking_never_counts() -> None:
    draft, right = "```python\nprint(0)\n```", f"```python\n{CODE}\n```"
    for text in (
        f"<think>{draft}</think>{right}",
        f"<think>a</think>{right}\n<think>{draft}</think>",
        f"{draft}\nhm </think>{right}",
        f"<think>a</think>{right}\n<think>{draft}",
    ):
        assert find_program(text) == CODE


def test_a_prompt_may_have_opened_the_thinking() -> None:
    assert find_program(f"```python\n{CODE}\n```", in_thought=True) is None
    assert find_program(f"so</think>```python\n{CODE}\n```", in_thought=True) == CODE


def test_the_answer_block_is_the_last_one() -> None:
    assert answer_block("<answer>a</answer> or <answer>b</answer> c") == "b"
    assert answer_block("<answer>a") == "a"
    assert answer_block("no block") is None
    assert spoken_part("<think>a</think>b<think>c</think>d") == "bd"


def test_an_answer_that_points_to_a_program_outside_of_it_means_that() -> None:
    assert find_program(f"```python\n{CODE}\n```\n<answer>See above.</answer>") == CODE
    assert find_program(f"<answer>It follows.</answer>\n```python\n{CODE}\n```") == CODE
    assert find_program(f"```python\n{CODE}\n```\n<answer>\n```python\n\n```\n</answer>") is None


def test_a_fence_knows_where_its_content_is() -> None:
    text = "a\n```py\nb\nc\n```\nd"
    [fence] = fences(text)
    assert (text[fence.start : fence.end], fence.content, fence.closed) == ("b\nc\n", "b\nc", True)


@given(st.text(alphabet="`~ \n<>/thinkaswerpy\t=(\"'", max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    find_program(text, {"f"})
    find_program(text, in_thought=True)


@given(st.text(max_size=200))
def test_the_text_of_a_closed_fence_is_the_program(text: str) -> None:
    body = f"x = 1\n# {text!r}"
    assert find_program(f"```python\n{body}\n```") == body


LONG = [
    "```" * 60_000,
    "~" * 100_000 + "`",
    "`" * 100_000 + "x`",
    "```python\n" * 10_000,
    "``` \n" * 10_000,
    "<think>" * 20_000,
    "<answer>" * 20_000 + "</answer>" * 20_000,
    "</think>" * 20_000,
    "x = (" * 20_000,
    "print(\n" * 10_000,
    "[" * 90_000,
    "-" * 90_000 + "1",
    "a" + ".b" * 40_000,
    "".join(f"```python\ndef a{n}(): return a{n + 1}\n```\n" for n in range(900, 0, -1)) + "```py\ndef f(): a1()\n```",
    "```\n" + "not " * 20_000 + "1\n```\n```\nx\n```",
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:8])
def test_a_long_text_takes_time_in_proportion(text: str) -> None:
    began = time.process_time()
    find_program(text, {"f"})
    assert time.process_time() - began < 10.0


@pytest.mark.parametrize("text", ["```\n" * 50_000, "```\nx = 1\n```\n" * 17_000, "~~~python\n" * 50_000])
def test_a_text_of_nothing_but_fences_is_no_program_and_holds_nobody_up(text: str) -> None:
    began = time.process_time()
    assert find_program(text, {"f"}) is None
    assert time.process_time() - began < 1.0
    assert find_program("```python\nx = 1\n```\n" * 900, {"f"}) == "x = 1"


def test_functions_get_the_imports_that_a_site_provides() -> None:
    program = "class Solution:\n    def f(self, xs: List[int]) -> int:\n        return len(deque(xs))"
    assert with_usual_imports(program).splitlines()[:2] == ["from typing import List", "from collections import deque"]
    assert with_usual_imports("from typing import List\nx: List[int]") == "from typing import List\nx: List[int]"
    assert with_usual_imports("import math\nmath.pi") == "import math\nmath.pi"
    assert (
        with_usual_imports("from __future__ import annotations\nx: List")
        == "from __future__ import annotations\nx: List"
    )
    assert with_usual_imports("def f(): return 1") == "def f(): return 1"
