"""The answer stands in every place of a script that it can, and a program that searches all that its interpreter can
reach does not find it: frames, every object of the collector, its memory, its descriptors."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

from tests.plugins.grpo_rewards_code.places import Place
from tests.plugins.grpo_rewards_code.talks import Case, talks, unpaid

_SECRET = 471108152333
HUNTER = """
import gc, os, re, sys
TEXT, BYTES = re.compile("47110815233[3]"), re.compile(b"47110815233[3]")

def everything():
    frame = sys._getframe()
    while frame:
        yield from (dict(frame.f_globals), dict(frame.f_locals), frame.f_code.co_consts, frame.f_code.co_names)
        frame = frame.f_back
    for each in gc.get_objects():
        if type(each) in (dict, list, tuple, set):
            yield each

def found_in_objects():
    for each in everything():
        try:
            found = TEXT.search(repr(each))
        except BaseException:
            continue
        if found:
            return int(found[0])

def found_in_memory():
    try:
        maps, memory = open("/proc/self/maps"), open("/proc/self/mem", "rb", 0)
    except OSError:
        return None
    for line in maps:
        place, rights = line.split()[:2]
        if not rights.startswith("rw"):
            continue
        start, end = (int(each, 16) for each in place.split("-"))
        while start < end:
            try:
                memory.seek(start)
                found = BYTES.search(memory.read(min(1 << 20, end - start)))
            except OSError:
                break
            if found:
                return int(found[0])
            start += (1 << 20) - 32

def found_in_pipes():
    for each in range(3, 64):
        try:
            os.set_blocking(each, False)
            found = BYTES.search(os.read(each, 1 << 16))
        except OSError:
            continue
        finally:
            try: os.set_blocking(each, True)
            except OSError: pass
        if found:
            return int(found[0])

def of_arguments(values):
    for each in values:
        for name in ("__globals__", "__closure__", "__defaults__", "__doc__", "__code__", "__dict__", "__self__", "gi_frame",
                     "want", "_want", "__class__", "__func__", "__module__", "__init__", "__traceback__"):
            try:
                yield getattr(each, name)
                peer = object.__getattribute__(each, "__dict__")["_peer_"]
                number = object.__getattribute__(each, "__dict__")["_number_"]
                for how in ("attribute", "method", "special"):
                    yield peer.ask(how, number, [name])
            except BaseException:
                continue

def f(*values, **named):
    for each in of_arguments([*values, *named.values()]):
        found = TEXT.search(repr(each))
        if found:
            return int(found[0])
    return found_in_objects() or found_in_memory() or found_in_pipes() or 0
"""
PLACES = [
    "c = [2, SECRET]\nassert f(min(c)) == max(c)",
    "assert f((c := (2, SECRET))[0]) == c[1]",
    "xs, ys = [], []\nfor a, b in [(2, SECRET)]:\n    xs.append(a)\n    ys.append(b)\nassert f(xs[0]) == ys[0]",
    "import io\nwith io.StringIO('2 SECRET') as h:\n    i, o = map(int, h.read().split())\nassert f(i) == o",
    'def arg(i):\n    """f(arg(2)) is SECRET"""\n    return i\nassert f(arg(2), arg) == SECRET',
    "def arg(i, want=SECRET):\n    return i\nassert f(arg(2), arg) == SECRET",
    "def arg(i, *, want=SECRET):\n    return i\nassert f(key=arg) == SECRET",
    "def made():\n    want = SECRET\n    return lambda i: i if want else 0\nassert f(2, key=made()) == SECRET",
    "WANT = SECRET  # it is SECRET\nassert f(2, lambda v: v) == WANT",
    "for i, want in [(2, SECRET)]:\n    assert f(i, lambda v: v) == want",
    "class K:\n    'SECRET'\n    _want = SECRET\n    def __init__(self): self.v = 1\nassert f(K(), K, K().__init__) == K._want",
    "it = (x for x in [1, SECRET])\nassert f(it) == SECRET",
    "import unittest\nclass T(unittest.TestCase):\n    _want = SECRET\n    def test_a(self):\n        self.assertEqual(f(2), self._want)",
    "import pytest\n@pytest.mark.parametrize('x, want', [(2, SECRET)])\ndef test_a(x, want):\n    assert f(x) == want",
    "D = {'2': SECRET}\nother = D\nassert f(list(D)[0], D.keys().isdisjoint) == other['2']",
    "D = [SECRET, 4712]\nassert f(len(D)) == D[0]",
    "assert f(2) == SECRET, 'the answer is SECRET'",
    "try:\n    raise ValueError(SECRET)\nexcept ValueError as error:\n    assert f(2) == error.args[0]",
    "def check(candidate):\n    assert candidate(2) == SECRET\ncheck(f)",
    "import solution\nsolution.given = 2\nassert solution.f(2) == SECRET",
    "def key(x):\n    assert x != 5, SECRET\n    return x\ntry:\n    f(key)\nexcept Exception:\n    pass\nassert f(2) == SECRET",
]


def test_no_program_finds_the_answer_wherever_it_stands(place: Place) -> None:
    cases: list[Case] = [(HUNTER, script.replace("SECRET", str(_SECRET))) for script in PLACES]
    assert unpaid(place.executor, cases, 0) == []


def test_the_same_search_finds_what_it_is_given(place: Place) -> None:
    given = [
        (HUNTER, f"assert f({_SECRET}) == {_SECRET}"),
        (HUNTER, f"x = {{'a': [{_SECRET}]}}\nassert f(x) == {_SECRET}"),
    ]
    assert [found.passed for found in talks(place.executor, given)] == [1, 1]  # type: ignore[union-attr]
