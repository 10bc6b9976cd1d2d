"""Assertions about what the program was given: it left it alone, or changed it as it should."""

from __future__ import annotations

from tests.plugins.grpo_rewards_code.places import Place
from tests.plugins.grpo_rewards_code.talks import unpaid

ROTATE = "def f(m): return [list(r) for r in zip(*m[::-1])]"
ROTATE_IN_PLACE = "def f(m):\n    m[:] = [list(r) for r in zip(*m[::-1])]\n    return m"
TOTAL = "def f(m): return sum(m)"
TOTAL_EMPTIES = "def f(m):\n    s = 0\n    while m:\n        s += m.pop()\n    return s"
SORT = "def f(m): m.sort()"
SORT_NOT = "def f(m): return None"
FIRST_GONE = "def f(m):\n    s = sum(m)\n    m[0] = 0\n    return s"
ADD = "def f(d, k): return {**d, k: 1}"
ADD_IN_PLACE = "def f(d, k):\n    d[k] = 1\n    return d"
GRID = "m = [[1, 2], [3, 4]]\nassert f(m) == [[3, 1], [4, 2]]\n"


CASES = [
    (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m == [[1, 2], [3, 4]]"),
    (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m[0] == [1, 2]"),
    (ROTATE, ROTATE_IN_PLACE, f"{GRID}assert m[0][0] == 1 and len(m) == 2"),
    (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert m == [1, 2]"),
    (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3 and m == [1, 2]"),
    (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m=m) == 3\nassert len(m) == 2"),
    (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert sorted(m) == [1, 2]"),
    (TOTAL, TOTAL_EMPTIES, "m = [1, 2]\nassert f(m) == 3\nassert f(m) == 3\nassert m"),
    (TOTAL, FIRST_GONE, "m = [1, 2]\nassert f(m) == 3\nassert m[0] == 1"),
    (TOTAL, FIRST_GONE, "m = [1, 2]\nassert f(m) == 3 and m[0] == 1"),
    (SORT, SORT_NOT, "m = [3, 1, 2]\nassert f(m) is None\nassert m == [1, 2, 3]"),
    (SORT, SORT_NOT, "m = [3, 1, 2]\nassert f(m) is None\nassert m[0] == 1"),
    (ADD, ADD_IN_PLACE, "d = {'a': 1}\nassert f(d, 'b') == {'a': 1, 'b': 1}\nassert d == {'a': 1}"),
    (ADD, ADD_IN_PLACE, "d = {'a': 1}\nassert f(d, 'b') == {'a': 1, 'b': 1}\nassert 'b' not in d"),
    (TOTAL, FIRST_GONE, "m = [1, 2]\nn = m\nassert f(m) == 3\nassert n == [1, 2]"),
    (TOTAL, FIRST_GONE, "m = [1, 2]\nfor _ in range(2):\n    assert f(m) == 3\nassert m == [1, 2]"),
    (SORT, SORT_NOT, "rows = [[3, 1]]\nrow = rows[0]\nf(row)\nassert rows == [[1, 3]]"),
    (SORT, SORT_NOT, "from collections import deque\nm = [3, 1]\nn = {'a': m}\nf(n['a'])\nassert m == [1, 3]"),
]
"""A right program, one that does to its argument what it should not, and the script."""


def test_what_became_of_an_argument_is_judged(place: Place) -> None:
    assert unpaid(place.executor, [(right, script) for right, _, script in CASES], 1) == []
    assert unpaid(place.executor, [(wrong, script) for _, wrong, script in CASES], 0) == []
