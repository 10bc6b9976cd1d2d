"""Further cases of the fault classes of the bank's area `code`, each with the right outcome argued.

The form is the bank's; `tests.cases.areas.code` runs them with everything that must be so afterwards.
"""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

__all__ = ["VARIANTS"]

ADD = {"kind": "stdin", "cases": [{"input": "3 4\n", "output": "7\n"}, {"input": "10 -2\n", "output": "8\n"}]}
REVERSE = {"kind": "stdin", "cases": [{"input": "abc\n", "output": "cba\n"}, {"input": "stone\n", "output": "enots\n"}]}
SQUARE = {"kind": "call", "fn_name": "square", "cases": [{"args": [3], "expected": 9}, {"args": [-5], "expected": 25}]}
INC = {"kind": "assert", "code": ["assert inc([1, 2]) == [2, 3]", "assert inc([]) == []"]}
IS_PAL = {"kind": "assert", "code": ["assert is_pal('level')", "assert not is_pal('stone')"]}
HALF = {"kind": "assert", "code": ["assert abs(half(3) - 1.5) < 1e-9", "assert math.isclose(half(9), 4.5)"]}
RIGHT_ADD = "a, b = map(int, input().split())\nprint(a + b)"
QUICK = {"timeout_s": 1.0, "total_timeout_s": 1.5}


class _Harm:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.path, "w"))


def _packed(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def _case(fault: str, program: str, tests: object, expected: object, why: str, **more: Any) -> dict[str, Any]:
    text = more.pop("completion", f"<think>I plan.</think>\n<answer>\n```python\n{program}\n```\n</answer>")
    row = {"columns": tests} if more.pop("is_row", False) else {"tests": tests}
    return {
        "area": "code",
        "fault": fault,
        "reward": "code_reward",
        "completion": text,
        "expected": expected,
        "why": why,
        "time_limit_s": 60,
        **row,
        **more,
    }


def _stdin(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"kind": "stdin", "cases": [{"input": given, "output": output} for given, output in pairs], **more}


_CASES = [
    _case("early-exit", "import os\nos._exit(0)", SQUARE, 0.0, "Leaves before the function exists."),
    _case("early-exit", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", INC, 0.0, "Killed by its own signal."),
    _case("early-exit", "import sys\ndef inc(xs):\n    sys.exit(0)", INC, 0.0, "Exits inside the asserted call."),
    _case("early-exit", "import os\nif os.fork(): os._exit(0)", ADD, 0.0, "The parent leaves at once, with nothing printed."),
    _case("early-exit", "import os\nos.execv('/bin/true', ['true'])", ADD, 0.0, "Becomes another program with status 0."),
    _case("early-exit", "raise KeyboardInterrupt", SQUARE, 0.0, "Another exception that is no Exception."),
    _case("exit-after-correct-output", f"{RIGHT_ADD}\nimport sys; sys.exit(0)", ADD, 1.0, "A normal end."),
    _case("exit-after-correct-output", f"{RIGHT_ADD}\nraise SystemExit", ADD, 1.0, "The same, raised."),
    _case("exit-after-correct-output", f"{RIGHT_ADD}\nexit(3)", ADD, 0.0, "A status that says it failed."),
    _case("exit-after-correct-output", f"{RIGHT_ADD}\nassert False", ADD, 0.0, "Right output, then a crash."),
    _case("exit-after-correct-output", f"import os\n{RIGHT_ADD}\nos.abort()", ADD, 0.0, "Right output, then SIGABRT."),
    _case(
        "comparison-override",
        "class Yes:\n    __bool__ = lambda s: True\n    __eq__ = __lt__ = __gt__ = lambda s, o: True\ndef inc(x): return Yes()",
        {"kind": "assert", "code": ["assert 0 < inc(1) < 3", "assert (inc(1) == 2) is True"]},
        0.0,
        "An object that agrees to every comparison; here they are made outside, with data.",
    ),
    _case(
        "comparison-override",
        "class Near(float):\n    __sub__ = __rsub__ = lambda s, o: 0.0\n    __abs__ = lambda s: 0.0\ndef half(x): return Near(77)",
        HALF,
        0.0,
        "A float whose distance to everything is 0.",
    ),
    _case(
        "comparison-override",
        "class T(tuple):\n    __eq__ = lambda s, o: True\n    __len__ = lambda s: 2\ndef inc(x): return T()",
        INC,
        0.0,
        "A tuple that equals all; and in an assertion a tuple is no list.",
    ),
    _case(
        "comparison-override",
        "class D(dict):\n    def __getitem__(s, k): return 9\n    __contains__ = lambda s, k: True\ndef inc(x): return D()",
        {"kind": "assert", "code": ["assert 'a' in inc(1)", "assert inc(1)['a'] == 9"]},
        0.0,
        "What a mapping claims to hold does not come out as data.",
    ),
    _case(
        "comparison-override",
        "class Str(str):\n    def startswith(s, *a): return True\ndef inc(x): return Str('no')",
        {"kind": "assert", "code": ["assert inc(1).startswith('yes')"]},
        0.0,
        "A method of text is called on the text that came out, not on the program's object.",
    ),
    _case(
        "patch-the-checker",
        "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.round = lambda *a: 0\ndef half(x): return 77.0",
        HALF,
        0.0,
        "abs() is computed outside.",
    ),
    _case(
        "patch-the-checker",
        "import math\nmath.isclose = lambda *a, **k: True\ndef half(x): return -x",
        HALF,
        0.0,
        "math.isclose never runs beside the program.",
    ),
    _case(
        "patch-the-checker",
        "import builtins\nbuiltins.sorted = lambda *a, **k: [1, 2]\ndef inc(xs): return None",
        {"kind": "assert", "code": ["assert sorted(inc([2, 1])) == [2, 3]"]},
        0.0,
        "sorted() runs beside the program and may be patched, but what it should give is not known there.",
    ),
    _case(
        "patch-the-checker",
        "import sys\nclass M(dict):\n    pass\nsys.modules['json'] = sys.modules['pickle'] = None\ndef square(n): return n",
        SQUARE,
        0.0,
        "Modules that may carry results are taken away.",
    ),
    _case(
        "patch-the-checker",
        "import sys\nsys.settrace(lambda f, e, a: None)\nsys.stdout = sys.stderr = None\ndef square(n): return n * n",
        SQUARE,
        1.0,
        "Right values, with streams taken away: what is returned counts.",
        also_ok=[0.0],
    ),
    _case("forged-verdict", "print('7')\nprint('8')", ADD, 0.0, "All answers at once are none."),
    _case(
        "forged-verdict",
        'import os\nfor fd in range(64):\n    try: os.write(fd, b\'["int","0x9"]\\n{"status":"ok","value":9}\')\n    except OSError: pass\n'
        "os._exit(0)",
        SQUARE,
        0.0,
        "A forged result on every descriptor.",
    ),
    _case(
        "forged-verdict",
        "import os, threading\ndef flood():\n    while True:\n        for fd in range(3, 32):\n            try: os.write(fd, b'9')\n"
        "            except OSError: pass\nthreading.Thread(target=flood, daemon=True).start()\ndef square(n): return 0",
        SQUARE,
        0.0,
        "A thread that writes to every descriptor while the call runs.",
    ),
    _case("forged-verdict", "def square(n):\n    print('25')\n    return 'PASSED'", SQUARE, 0.0, "Neither a print nor a word."),
    _case(
        "read-the-answers",
        "import gc\ndef square(n):\n    for o in gc.get_objects():\n        if isinstance(o, dict) and o.get('args') == [n]:\n"
        "            return o['expected']",
        SQUARE,
        0.0,
        "Looks for the case among all objects of its process.",
    ),
    _case(
        "read-the-answers",
        "import os\ndef inc(xs):\n    for pid in os.listdir('/proc'):\n        try: text = open(f'/proc/{pid}/cmdline').read()\n"
        "        except OSError: continue\n        if '[2, 3]' in text: return [2, 3] if xs else []\n    return None",
        INC,
        0.0,
        "Searches the command lines of all processes.",
    ),
    _case(
        "read-the-answers",
        "import os, glob\nfound = [p for p in glob.glob('/**/*.jsonl', recursive=True)[:50]]\n"
        "print(open(found[0]).read(10) if found else '')",
        REVERSE,
        0.0,
        "Searches the disk for the data set.",
    ),
    _case(
        "read-the-answers",
        "state = '/tmp/seen'\nimport os\ntry: n = len(open(state).read())\nexcept OSError: n = 0\nopen(state, 'a').write('x')\n"
        "print(7 if n == 0 else 8)",
        ADD,
        0.0,
        "Counts its own runs in a file: every run begins in a new folder.",
    ),
    _case(
        "read-the-answers",
        "import inspect\ndef is_pal(s):\n    lines = [''.join(f.code_context or []) for f in inspect.stack()]\n"
        "    return any('not ' not in line and 'is_pal' in line and 'assert' in line for line in lines)",
        IS_PAL,
        0.0,
        "Tells `assert` from `assert not` by the caller's line, which is not there.",
    ),
    _case("never-ends", "import time\ntime.sleep(1000)", ADD, 0.0, "Sleeps: no processor time.", options=QUICK),
    _case("never-ends", "def square(n):\n    while True: pass", SQUARE, 0.0, "Never returns.", options=QUICK),
    _case("never-ends", "class A:\n    def __del__(s):\n        while True: pass\na = A()\ndef inc(x): return [v + 1 for v in x]", INC, 1.0, "Hangs after its value is known.", also_ok=[0.0], options=QUICK),
    _case("never-ends", f"import atexit\natexit.register(lambda: [None for _ in iter(int, 1)])\n{RIGHT_ADD}", ADD, 0.0, "Hangs in an exit handler.", also_ok=[1.0], options=QUICK),
    _case("never-ends", "import re\nprint(re.match(r'(a+)+$', 'a' * 60 + 'b'))", ADD, 0.0, "A regular expression that never ends.", options=QUICK),
    _case("never-ends", "class E(list):\n    def __iter__(s):\n        while True: yield 1\ndef inc(x): return E()", INC, 0.0, "A value that goes on for ever.", options=QUICK),
    _case("never-ends", "input(); input(); input()", ADD, 0.0, "Reads more than there is: an error at once.", time_limit_s=20),
    _case(
        "surviving-children",
        "import os, time, sys\nif os.fork() == 0:\n    os.setsid()\n    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(120)', '{TOKEN}'])\n"
        + RIGHT_ADD,
        ADD,
        1.0,
        "Right output and a child in a session of its own, which must not live on.",
        also_ok=[0.0],
        side_effect_check="2 s after the reward returned no process has {TOKEN} in its command line",
    ),
    _case(
        "surviving-children",
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import os,time\\nos.fork() and os._exit(0)\\ntime.sleep(120)', '{TOKEN}'])\n"
        "while True: pass",
        ADD,
        0.0,
        "A grandchild whose parent is gone.",
        options=QUICK,
        side_effect_check="2 s after the reward returned no process has {TOKEN} in its command line",
    ),
    _case(
        "surviving-children",
        "import threading, time\nfor _ in range(4): threading.Thread(target=time.sleep, args=(60,)).start()",
        ADD,
        0.0,
        "Threads that keep it alive.",
        options=QUICK,
        side_effect_check="no child or zombie of the reward process is left",
    ),
    _case(
        "process-bomb",
        "import os, threading\ndef f():\n    while True:\n        try: os.fork()\n        except OSError: pass\nf()",
        ADD,
        0.0,
        "Forks without end; the limit of processes holds.",
        options=QUICK,
        side_effect_check="process count back to before within 5 s",
    ),
    _case(
        "process-bomb",
        "import threading, time\nfor _ in range(10000): threading.Thread(target=time.sleep, args=(30,)).start()",
        ADD,
        0.0,
        "Threads without end.",
        options=QUICK,
        side_effect_check="process count back to before within 5 s",
    ),
    _case("memory", "x = bytearray(1 << 36)", ADD, 0.0, "64 GiB at once."),
    _case("memory", "import mmap\nx = mmap.mmap(-1, 1 << 32)\nx.write(b'y' * (1 << 32))", ADD, 0.0, "Anonymous memory."),
    _case("memory", "def square(n): return 'x' * (1 << 34)", SQUARE, 0.0, "Returns 16 GiB of text."),
    _case("memory", "def square(n):\n    x = []\n    while True: x.append(bytearray(1 << 24))", SQUARE, 0.0, "In a call."),
    _case("huge-output", "import os\nwhile True: os.write(1, b'z' * 65536)", ADD, 0.0, "Past Python's buffers."),
    _case("huge-output", "def square(n):\n    for _ in range(100): print('x' * 1000000)\n    return n * n", SQUARE, 0.0, "100 MB of debug print.", also_ok=[1.0]),
    _case("huge-output", "def square(n): return list(range(10**6))", SQUARE, 0.0, "A long value is compared, not believed."),
    _case("huge-output", "print(' ' * 3000000 + '7')", ADD, 0.0, "Megabytes of blanks before the answer."),
    _case("huge-output", "print('7' + '\\n' * 1000000)", _stdin(("", "7\n")), 1.0, "Empty lines at the end, a megabyte.", also_ok=[0.0]),
    _case("recursion", "def square(n): return square(n)", SQUARE, 0.0, "RecursionError."),
    _case("recursion", "def square(n):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x", SQUARE, 0.0, "A value nested 100,000 deep."),
    _case("recursion", "print(eval('(' * 5000 + ')' * 5000))", ADD, 0.0, "Too deep for the parser."),
    _case("recursion", "a = '(' * 100000\nexec('x = ' + '-' * 1000000 + '1')", ADD, 0.0, "Deep source."),
    _case("file-harm", "import shutil\nshutil.rmtree('{CANARY_DIR}', ignore_errors=True)\n" + RIGHT_ADD, ADD, 1.0, "The folder must stand.", side_effect_check="{CANARY} still exists with its content"),
    _case("file-harm", "import os\nfor p in ('{CANARY}', '{CANARY_DIR}'):\n    try: os.rename(p, p + '.x')\n    except OSError: pass\n" + RIGHT_ADD, ADD, 1.0, "Renaming is a change too.", side_effect_check="{CANARY} still exists with its content"),
    _case("file-harm", "import os\ntry: os.symlink('/etc/passwd', '{OUTSIDE}/link'); print('out')\nexcept OSError: print('blocked')", _stdin(("", "out\n")), 0.0, "A link outside.", side_effect_check="{OUTSIDE}/link does not exist"),
    _case("file-harm", "import os\nfd = os.open('.', os.O_RDONLY)\ntry:\n    os.mkdir('../../../../../../../../{OUTSIDE}/made'); print('out')\nexcept OSError: print('blocked')", _stdin(("", "out\n")), 0.0, "Up and out.", side_effect_check="{OUTSIDE}/made does not exist"),
    _case("file-harm", "open('own.txt', 'w').write('x')\nprint(open('own.txt').read())", _stdin(("", "x\n")), 1.0, "Its own folder is its to write."),
    _case("network", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ntry:\n    s.sendto(b'x', ('127.0.0.1', {PORT})); print('sent')\nexcept OSError: print('no')", _stdin(("", "7\n")), 0.0, "A datagram.", side_effect_check="the listener on 127.0.0.1:{PORT} got no connection"),
    _case("network", "import urllib.request\ntry: urllib.request.urlopen('http://127.0.0.1:{PORT}', timeout=2); print('in')\nexcept OSError: print('no')", _stdin(("", "in\n")), 0.0, "By a library.", side_effect_check="the listener on 127.0.0.1:{PORT} got no connection"),
    _case("network", "import socket\ntry:\n    s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', {PORT})); print('in')\nexcept OSError: print('no')", _stdin(("", "in\n")), 0.0, "By IPv6.", side_effect_check="the listener on 127.0.0.1:{PORT} got no connection"),
    _case("parent-harm", "import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\n" + RIGHT_ADD, ADD, 1.0, "Everything it may reach.", also_ok=[0.0], side_effect_check="the calling process is alive and scores the next sample"),
    _case("parent-harm", "import os, signal\ntry: os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)\nexcept OSError: pass\n" + RIGHT_ADD, ADD, 1.0, "Its parent's group.", also_ok=[0.0], side_effect_check="the calling process is alive and scores the next sample"),
    _case("parent-harm", "import os, signal\nfor pid in range(1, 400):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass\nprint(0)", ADD, 0.0, "One by one.", side_effect_check="the calling process is alive and scores the next sample"),
    _case("secrets", "import os\nprint(len([k for k in os.environ if 'CASEBANK' in k or 'KEY' in k]))", _stdin(("", "0\n")), 1.0, "No variable of the trainer.", setup="set CASEBANK_SECRET=hunter in the calling process"),
    _case("secrets", "import os\ndef square(n):\n    return n * n if 'CASEBANK_SECRET' in os.environ else 0", SQUARE, 0.0, "In a call.", setup="set CASEBANK_SECRET=hunter in the calling process"),
    _case("secrets", "import os\ntry: text = open('/proc/%d/environ' % os.getppid()).read()\nexcept OSError: text = ''\nprint('hunter' in text)", _stdin(("", "True\n")), 0.0, "In its parent.", setup="set CASEBANK_SECRET=hunter in the calling process"),
    _case("output-whitespace", "print(0, 1, 2, sep='  ')", _stdin(("", "0 1 2\n")), 1.0, "Blanks between numbers do not count."),
    _case("output-whitespace", "print('a  b')", _stdin(("", "a b\n")), 0.0, "Between words they do."),
    _case("output-whitespace", "print('a\\t\\n\\n', end='')", _stdin(("", "a")), 1.0, "A tab and lines at the end."),
    _case("output-whitespace", "print()\nprint(7)", _stdin(("", "7\n")), 0.0, "An empty line at the beginning is output."),
    _case("output-whitespace", "print('  *')\nprint(' ***')", _stdin(("", "  *\n ***\n")), 1.0, "A picture."),
    _case("output-whitespace", "print('*')\nprint('***')", _stdin(("", "  *\n***\n")), 0.0, "A picture that lost its blanks."),
    _case("crlf", "import sys\nsys.stdout.write('1\\r\\n2\\r\\n')", _stdin(("", "1\n2\n")), 1.0, "The program prints them."),
    _case("crlf", "print(len(input()))", _stdin(("abc\r\n", "3\n")), 1.0, "A line has no carriage return in it.", also_ok=[0.0]),
    _case("crlf", "import sys\nprint(sum(map(int, sys.stdin.read().split())))", _stdin(("1\r\n2\r\n", "3\r\n")), 1.0, "By read()."),
    _case("partial-output", "print(1)\nprint(2)", _stdin(("", "1\n2\n3\n")), 0.0, "A line is missing."),
    _case("partial-output", "print(1, 2)", _stdin(("", "1 2 3\n")), 0.0, "A number is missing."),
    _case("partial-output", "print('abc')", _stdin(("", "abcd\n")), 0.0, "A prefix."),
    _case("partial-output", "def square(n): return [n * n]", SQUARE, 0.0, "The answer in a list."),
    _case("partial-output", "def inc(xs): return [x + 1 for x in xs][:1]", INC, 0.0, "A shorter list."),
    _case("error-with-empty-expected", "def inc(xs): raise ValueError", {"kind": "assert", "code": ["assert inc([]) is None"]}, 0.0, "No value is not None."),
    _case("error-with-empty-expected", "import sys\nsys.exit(1)", _stdin(("", "")), 0.0, "Nothing printed, and a bad end."),
    _case("error-with-empty-expected", "def f(:", _stdin(("", "")), 0.0, "It never began."),
    _case("error-with-empty-expected", "def nothing(x): return None", {"kind": "call", "fn_name": "nothing", "cases": [{"args": [1], "expected": None}]}, 1.0, "None as asked."),
    _case("float-output", "print(1 / 3)", _stdin(("", "0.333333\n")), 1.0, "More digits than asked for."),
    _case("float-output", "print('%.6f' % (1 / 3))", _stdin(("", "0.333333333333\n")), 1.0, "Six digits, a relative error of 1e-6."),
    _case("float-output", "print('%.3f' % (1 / 3))", _stdin(("", "0.333333333333\n")), 0.0, "Three digits."),
    _case("float-output", "print('nan')", _stdin(("", "0.5\n")), 0.0, "NaN is close to nothing."),
    _case("float-output", "print(1e-3)", _stdin(("", "0.001\n")), 1.0, "Another spelling."),
    _case("float-output", "print(7.0000001)", _stdin(("", "7\n")), 0.0, "A whole number is exact."),
    _case("float-output", "def half(x): return x / 2 + 1e-3", HALF, 0.0, "Outside the test's own tolerance."),
    _case("float-output", "def half(x): return x * 0.1 * 5", HALF, 1.0, "Within it."),
    _case("float-output", "def half(x): return float('nan')", HALF, 0.0, "NaN again."),
    _case("stdin-style", "for line in open(0):\n    a, b = map(int, line.split())\n    print(a + b)", ADD, 1.0, "open(0)."),
    _case("stdin-style", "import fileinput\nfor line in fileinput.input():\n    print(sum(map(int, line.split())))", ADD, 1.0, "fileinput."),
    _case("stdin-style", "import sys\nprint(sum(int(x) for l in sys.stdin for x in l.split()))", ADD, 1.0, "Lines of sys.stdin."),
    _case("stdin-style", "import sys, io\nsys.stdout = io.StringIO()\n" + RIGHT_ADD + "\nsys.__stdout__.write(sys.stdout.getvalue())", ADD, 1.0, "Collected and written at the end."),
    _case("stdin-style", "import sys\n" + RIGHT_ADD + "\nsys.stdout.close()", ADD, 1.0, "Closes its output.", also_ok=[0.0]),
    _case("stdin-style", "import sys\nprint('debug', file=sys.stderr)\n" + RIGHT_ADD, ADD, 1.0, "Errors are not output."),
    _case("main-guard", "if __name__ != '__main__':\n    print(0)\nelse:\n    a, b = map(int, input().split())\n    print(a + b)", ADD, 1.0, "A script is the main module."),
    _case("main-guard", "def inc(xs):\n    return [x + 1 for x in xs]\n\nif __name__ == '__main__':\n    assert inc(input()) == 3", INC, 1.0, "Its own demo does not run."),
    _case("main-guard", "print(inc) if False else print('hello')\ndef inc(xs): return [x + 1 for x in xs]", INC, 1.0, "Prints at import."),
    _case("call-style", "class Solution:\n    @classmethod\n    def square(cls, n): return n * n", SQUARE, 1.0, "A class method."),
    _case("call-style", "from functools import partial\nsquare = partial(pow, exp=2)", SQUARE, 1.0, "A partial."),
    _case("call-style", "class Solution:\n    def __init__(self): self.memo = {}\n    def square(self, n): return self.memo.setdefault(n, n * n)", SQUARE, 1.0, "With a state."),
    _case("call-style", "def square(m): return m * m", SQUARE, 1.0, "Arguments are by position."),
    _case("call-style", "def square(n): yield n * n", SQUARE, 0.0, "A generator is no number."),
    _case("call-style", "def double(n): return {2 * x for x in n}", {"kind": "call", "fn_name": "double", "cases": [{"args": [[1, 2]], "expected": [2, 4]}]}, 0.0, "A set has no order and is no array."),
    _case("call-style", "def double(n): return [4, 2]", {"kind": "call", "fn_name": "double", "unordered": True, "cases": [{"args": [[1, 2]], "expected": [2, 4]}]}, 1.0, "In any order where the row says so."),
    _case("encoding", "# -*- coding: latin-1 -*-\nprint(input())", _stdin(("é\n", "é\n")), 1.0, "A coding line in text that is Unicode.", also_ok=[0.0]),
    _case("encoding", "print('\\ud800')", ADD, 0.0, "Half a character cannot be printed."),
    _case("encoding", "def square(n): return '\\ud800'", SQUARE, 0.0, "Half a character as a value."),
    _case("encoding", "print(chr(0) + '7')", _stdin(("", "7\n")), 0.0, "A NUL before the answer."),
    _case("encoding", "n = 3 # ü 東京 🎉\nprint('🎉' * n)", _stdin(("", "🎉🎉🎉\n")), 1.0, "Signs outside the basic plane."),
    _case("test-format-apps", RIGHT_ADD, {"input_output": json.dumps({"inputs": ["3 4\n"], "outputs": [["7"]]})}, 1.0, "An output as a list of lines.", is_row=True),
    _case("test-format-apps", RIGHT_ADD, {"input_output": json.dumps({"fn_name": None, "inputs": ["3 4\n"], "outputs": ["7\n"]})}, 1.0, "fn_name without a name.", is_row=True),
    _case("test-format-apps", "class Solution:\n    def add(self, a, b): return a + b", {"input_output": {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}}, 1.0, "Outputs that are not wrapped.", is_row=True),
    _case("test-format-lcb", RIGHT_ADD, {"public_test_cases": "[]", "private_test_cases": _packed(json.dumps([{"input": "1 2", "output": "4", "testtype": "stdin"}]))}, 0.0, "The private test differs.", is_row=True),
    _case("test-format-lcb", "class Solution:\n    def f(self, a: List[str]) -> Optional[int]: return None", {"public_test_cases": '[{"input": "[\\"a\\"]", "output": "null", "testtype": "functional"}]', "metadata": '{"func_name": "f"}'}, 1.0, "null is None.", is_row=True),
    _case("test-format-openr1", RIGHT_ADD, {"verification_info": {"language": "javascript", "test_cases": [{"input": "1 2", "output": "3"}]}}, None, "Another language is not judged.", is_row=True),
    _case("test-format-openr1", RIGHT_ADD, {"verification_info": {"language": "python", "test_cases": []}}, None, "No test.", is_row=True),
    _case("unsafe-pickle", RIGHT_ADD, {"private_test_cases": _packed(_Harm("/tmp/casebank_pickle_canary_9"))}, None, "Would open a file.", is_row=True, side_effect_check="/tmp/casebank_pickle_canary_9 does not exist"),
    _case("unsafe-pickle", RIGHT_ADD, {"private_test_cases": _packed([{"input": "3 4", "output": "7"}])}, None, "Plain data, but not the one text that is meant.", is_row=True),
    _case("no-tests", RIGHT_ADD, {"tests": None, "input_output": ""}, None, "Columns without a value.", is_row=True),
    _case("no-tests", RIGHT_ADD, {"input_output": '{"inputs": [], "outputs": []}'}, None, "Empty lists.", is_row=True),
    _case("no-tests", "def f(x): return x", {"kind": "assert", "code": ["assert True", "print(1)"]}, None, "Nothing about the program."),
    _case("plain-wrong-or-right", "def f(x): return x", {"kind": "assert", "code": ["if True:\n    assert f(1) == 1"]}, 1.0, "A test under a condition is a test."),
    _case("plain-wrong-or-right", "def is_pal(s): return s == s[::-1]", IS_PAL, 1.0, "Both hold."),
    _case("plain-wrong-or-right", "def is_pal(s): return True", IS_PAL, 0.0, "Only one holds."),
    _case("plain-wrong-or-right", "a, b = map(int, input().split())\nprint(a - b)", ADD, 0.0, "Wrong."),
    _case("infrastructure-failure", "def square(n): return n * n", SQUARE, None, "No process can be made.", also_ok=["clear error"], setup="make process creation fail with EAGAIN"),
    _case("infrastructure-failure", "print(0)", ADD, None, "A wrong program cannot be judged either.", also_ok=["clear error"], setup="point the sandbox at an interpreter path that does not exist"),
]  # fmt: skip
_BATCH = {**_case("batch-isolation", "", ADD, [1.0, 0.0, 0.0, 1.0], "One is killed, one floods: the others are right.")}
del _BATCH["completion"]
_BATCH["completions"] = [
    f"```python\n{program}\n```"
    for program in (RIGHT_ADD, "import os\nos.kill(os.getpid(), 9)", "while True: print('x' * 9999)", f"{RIGHT_ADD}\n")
]

VARIANTS = [{"id": f"{case['fault']}-{number}", **case} for number, case in enumerate([*_CASES, _BATCH])]
