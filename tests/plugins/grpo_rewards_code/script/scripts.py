"""Scripts of every kind that test code comes in, with programs that are right and wrong by them."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

from typing import Any

__all__ = ["HONEST", "NEVER_ENDING", "NO_VERDICT", "WRONG"]

Case = tuple[str, str | dict[str, Any]]
"""A program, and the text of its tests or their row."""

HONEST: list[Case] = [
    ("class E(Exception): pass\ndef f(x): raise E('too small')", "import pytest\nwith pytest.raises(E, match='too .mall') as e:\n    f(1)\nassert 'small' in str(e.value)"),
    ("class E(ValueError):\n    def __init__(self, c): super().__init__('bad'); self.c=c\ndef f(x): raise E(7)", 'import pytest\nwith pytest.raises(ValueError) as e:\n    f(1)\nassert e.value.c == 7\nassert isinstance(e.value, E)'),
    ("def f(x):\n    if x<0: raise ValueError('neg')\n    return x", "try:\n    f(-1)\n    assert False\nexcept ValueError as e:\n    assert str(e)=='neg'"),
    ("class V:\n    def __init__(s,x,y): s.x=x; s.y=y\n    def __add__(s,o): return V(s.x+o.x,s.y+o.y)\n    def __mul__(s,k): return V(s.x*k,s.y*k)\n    __rmul__=__mul__\n    def __eq__(s,o): return isinstance(o,V) and (s.x,s.y)==(o.x,o.y)\n    def __repr__(s): return f'V({s.x}, {s.y})'\n    def __hash__(s): return hash((s.x,s.y))\n    def __iter__(s): return iter((s.x,s.y))\n    def __lt__(s,o): return s.x<o.x", "assert V(1,2)+V(3,4)==V(4,6)\nassert 2*V(1,2)*3 == V(6,12)\nassert str(V(1,2))=='V(1, 2)'\nassert len({V(1,2),V(1,2)})==1\na,b=V(5,6)\nassert (a,b)==(5,6)\nassert V(1,2)!=V(2,2)\nassert V(1,2)<V(2,0)\nassert sorted([V(2,1),V(1,1)])[0].x==1\nassert V(1,2)!=3"),
    ('class C:\n    def __enter__(self): self.on=True; return self\n    def __exit__(self,*a): self.on=False; return a[0] is KeyError', 'with C() as c:\n    assert c.on\nassert not c.on\nwith C():\n    raise KeyError(1)\nassert True'),
    ('from enum import Enum\nclass Color(Enum):\n    RED=1\n    BLUE=2\ndef f(x): return Color.RED', "assert f(1)==Color.RED\nassert f(1) is Color.RED\nassert Color.RED.value==1\nassert len(list(Color))==2\nassert Color['BLUE'].name=='BLUE'\nassert Color(2) is Color.BLUE"),
    ('from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x:int\n    y:list=field(default_factory=list)\ndef make(): return P(1,[2])', "assert make()==P(1,[2])\nassert make().y==[2]\np=P(3)\np.x=9\nassert p.x==9\nassert repr(p)=='P(x=9, y=[])'\nassert isinstance(make(),P)"),
    ('class Node:\n    def __init__(self,v,n=None): self.v=v; self.next=n\ndef rev(h):\n    p=None\n    while h: h.next,p,h=p,h,h.next\n    return p', 'h=Node(1,Node(2,Node(3)))\nr=rev(h)\nout=[]\nwhile r:\n    out.append(r.v)\n    r=r.next\nassert out==[3,2,1]'),
    ('def rev(h):\n    p=None\n    while h: h.next,p,h=p,h,h.next\n    return p', 'class Node:\n    def __init__(self,v,n=None):\n        self.v=v\n        self.next=n\nh=Node(1,Node(2,Node(3)))\nr=rev(h)\nout=[]\nwhile r:\n    out.append(r.v)\n    r=r.next\nassert out==[3,2,1]'),
    ('def g():\n    x=0\n    while True:\n        y = yield x\n        x += y or 1', 'it=g()\nassert next(it)==0\nassert next(it)==1\nassert it.send(5)==6\nit.close()'),
    ('def deco(f):\n    def w(*a): return f(*a)+1\n    return w\n', '@deco\ndef h(x): return x*2\nassert h(3)==7'),
    ('def memo(f):\n    c={}\n    def w(x):\n        if x not in c: c[x]=f(x)\n        return c[x]\n    return w', 'calls=[]\ndef slow(x):\n    calls.append(x)\n    return x*x\nm=memo(slow)\nassert m(3)==9\nassert m(3)==9\nassert calls==[3]'),
    ('def main():\n    n=int(input())\n    print(n*2)', "import io,sys\nfrom unittest import mock\nwith mock.patch('builtins.input', return_value='21'), mock.patch('sys.stdout', new_callable=io.StringIO) as out:\n    main()\nassert out.getvalue()=='42\\n'"),
    ('def main():\n    n=int(input())\n    print(n*2)', "import io,sys\nsys.stdin=io.StringIO('21\\n')\nold=sys.stdout\nsys.stdout=b=io.StringIO()\nmain()\nsys.stdout=old\nassert b.getvalue()=='42\\n'"),
    ("def main():\n    print('hello')", "def test_m(capsys):\n    main()\n    assert capsys.readouterr().out=='hello\\n'"),
    ("def main():\n    print(input()+'!')", "def test_m(capsys, monkeypatch):\n    monkeypatch.setattr('builtins.input', lambda *a: 'hi')\n    main()\n    assert capsys.readouterr().out=='hi!\\n'"),
    ('import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x+1', 'import asyncio\nasync def t():\n    assert await f(1)==2\n    r=await asyncio.gather(f(1),f(2))\n    assert r==[2,3]\nasyncio.run(t())'),
    ('async def f(x): return x+1', 'import unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_a(self):\n        self.assertEqual(await f(1),2)'),
    ('async def f(x): return x+1', 'import pytest\n@pytest.mark.asyncio\nasync def test_a():\n    assert await f(1)==2'),
    ('async def g():\n    for i in range(3): yield i', 'import asyncio\nasync def t():\n    return [x async for x in g()]\nassert asyncio.run(t())==[0,1,2]'),
    ('counter=0\ndef inc():\n    global counter\n    counter+=1', 'import solution\ninc()\ninc()\nassert solution.counter==2\nfrom solution import *\nassert counter==2'),
    ('def add(a,b): return a+b', 'import solution as s\nassert s.add(1,2)==3'),
    ('def add(a,b): return a+b', 'from solution import add as plus\nassert plus(1,2)==3'),
    ('def add(a,b): return a+b', {'test': 'def check(candidate):\n    assert candidate(1,2)==3\n', 'entry_point': 'add'}),
    ('def sum(xs):\n    t=0\n    for x in xs: t+=x\n    return t', 'assert sum([1,2])==3'),
    ('def f(x): return 0.1+0.2', "assert f(1)==0.3\nassert [f(1)]==[0.3]\nassert {'a':(f(1),)}=={'a':(0.3,)}"),
    ("import re\ndef f(s): return re.match(r'(a)(b)',s)", "assert f('ab').group(1)=='a'\nassert f('x') is None"),
    ("from collections import Counter, namedtuple, defaultdict\nP=namedtuple('P','x y')\ndef f(s): return Counter(s)\ndef p(): return P(1,2)\ndef d():\n    r=defaultdict(list); r['a'].append(1); return r", "assert f('aab').most_common(1)==[('a',2)]\nassert f('ab')=={'a':1,'b':1}\nassert p().x==1 and p()==(1,2)\nassert d()=={'a':[1]}\nassert d()['a']==[1]"),
    ('class St(list):\n    def peek(self): return self[-1]', 's=St([1,2])\ns.append(3)\nassert s.peek()==3\nassert s==[1,2,3]\nassert len(s)==3\nassert 2 in s\nassert s[0]==1\nassert list(s)==[1,2,3]\nassert s'),
    ('def f(m):\n    m.append(4)\n    return m', 'm=[1]\nr=f(m)\nassert r is m\nassert m==[1,4]'),
    ("def f(d): d['x']['y'].add(3)", "d={'x':{'y':{1}}}\ny=d['x']['y']\nf(d)\nassert y=={1,3}"),
    ('import math\ndef f(x): return math.sqrt(x)', 'assert math.isclose(f(4),2)\nassert f(4)==math.sqrt(4)'),
    ('def f(x): return x', "import unittest\nclass T(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): cls.z=f(3)\n    def setUp(self): self.y=f(4)\n    def help(self,a): self.assertEqual(a, 4)\n    def test_a(self):\n        self.help(self.y)\n        for i in range(3):\n            with self.subTest(i=i):\n                self.assertEqual(f(i),i)\n        self.assertEqual(self.z,3)\n        self.assertAlmostEqual(f(0.1+0.2),0.3)\n        self.assertCountEqual(f([1,2]),[2,1])\n        self.assertRegex(f('abc'),'b')\nunittest.main(argv=[''],exit=False)"),
    ('def f(x): return x', "import pytest\n@pytest.fixture\ndef three(): return f(3)\nclass TestA:\n    def setup_method(self): self.x=2\n    def test_b(self, three):\n        assert three==3 and f(self.x)==2\n    @pytest.mark.parametrize('a,b',[(1,1),pytest.param(2,2,id='x')])\n    def test_c(self,a,b): assert f(a)==b"),
    ('def f(x): return x', 'def same(a,b):\n    if a!=b: raise AssertionError\nsame(f(2),2)'),
    ('def f(x): return x', 'import random\nxs=[random.random() for _ in range(9)]\nassert sorted(f(xs))==sorted(xs)'),
    ('def f(x): return x', "if __name__=='__main__':\n    assert f(2)==2"),
    ('import sys\ndef f(x): sys.exit(0)', 'import pytest\nwith pytest.raises(SystemExit) as e:\n    f(1)\nassert e.value.code==0'),
    ('def f(xs,key=None,reverse=False): return sorted(xs,key=key,reverse=reverse)', "assert f(['b','A'],key=str.lower)==['A','b']\nassert f([3,1],reverse=True)==[3,1]\nimport operator\nassert f([(1,2),(0,5)],key=operator.itemgetter(0))==[(0,5),(1,2)]"),
    ('def f(it): return list(it)', "assert f(x for x in [1,2])==[1,2]\nassert f(iter([3]))==[3]\nassert f(map(str,[1]))==['1']\nassert f(range(3))==[0,1,2]"),
    ('import datetime\ndef f(d): return d+datetime.timedelta(days=1)', 'import datetime\nassert f(datetime.date(2020,1,1))==datetime.date(2020,1,2)'),
    ('from pathlib import Path\ndef f(p): return Path(p).name\ndef g(p): return Path(p)', "assert f('/a/b')=='b'\nassert str(g('/a'))=='/a'"),
    ('class A:\n    count=0\n    def __init__(self): A.count+=1\n    @property\n    def n(self): return A.count\n    @staticmethod\n    def s(x): return x\n    @classmethod\n    def make(cls): return cls()', "a=A()\nassert a.n==1\nassert A.s(3)==3\nassert A.make().n==2\nassert A.count==2\nassert hasattr(a,'n') and not hasattr(a,'zzz')\nassert callable(A.s)\nassert isinstance(A.make(), A)\nassert type(a) is A\nassert type(a).__name__=='A'\nassert a.__class__.__name__=='A'"),
    ('class Base:\n    def area(self): raise NotImplementedError\nclass Sq(Base):\n    def __init__(self,s): self.s=s\n    def area(self): return self.s**2', 's=Sq(2)\nassert isinstance(s,Base) and issubclass(Sq,Base)\nassert s.area()==4\nimport pytest\nwith pytest.raises(NotImplementedError): Base().area()'),
    ('def f(x): return lambda y: x+y', 'assert f(1)(2)==3\nassert callable(f(1))'),
    ('from functools import lru_cache\n@lru_cache\ndef f(x): return x', 'assert f(2)==2\nassert f.cache_info().misses==1'),
    ('def f(x):\n    "doc"\n    return x', "assert f.__doc__=='doc'\nassert f.__name__=='f'"),
    ("def f(x): return float('nan')", 'import math\nassert math.isnan(f(1))'),
    ('def f(x): return x', "assert f('é\\ud800')=='é\\ud800'\nassert f(10**400)==10**400\nassert f(b'a')==b'a'\nassert f(None) is None\nassert f(frozenset({1}))=={1}\nassert f(1+2j)==1+2j"),
]  # fmt: skip
"""The program is right."""

WRONG: list[Case] = [
    ("def total(xs): return 3", "assert sum([1, 2]) == 3"),
    ('def f(x): return x', "try:\n    f(-1)\n    assert False\nexcept ValueError as e:\n    assert str(e)=='neg'"),
    ('def f(x): return x', 'try:\n    f(-1)\n    assert False\nexcept Exception as e:\n    pass'),
    ('def add(a,b): return 0', {'test': 'def check(candidate):\n    assert candidate(1,2)==3\n', 'entry_point': 'add'}),
    ('def sum(xs): return 4', 'assert sum([1,2])==3'),
    ('import builtins\nabs=lambda x:0\nbuiltins.abs=abs\ndef f(x): return 7.0', 'assert abs(f(1)-1.5)<1e-6'),
    ('def f(x): return 7.0000001', 'assert f(1)==7'),
    ('def f(x): return x', 'import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        for i in range(3):\n            with self.subTest(i=i):\n                self.assertEqual(f(i),i+1)'),
    ('def f(x): return x', "import pytest\n@pytest.mark.parametrize('a,b',[(1,1),(2,3)])\ndef test_c(a,b): assert f(a)==b"),
    ('def f(x): return x', 'def same(a,b):\n    if a!=b: raise AssertionError\nsame(f(2),3)'),
    ('def f(x): return x', 'if f(2)==3:\n    assert f(2)==3'),
    ('def f(x): return []', 'for y in f(2):\n    assert y==3'),
    ('import os\ndef f(x): os._exit(0)', 'assert f(1)==1'),
    ('import sys\ndef f(x): sys.exit(0)', 'assert f(1)==0'),
]  # fmt: skip
"""It is not."""

NEVER_ENDING: list[Case] = [
    ('def f(x):\n    while True: pass', 'assert f(1)==1'),
    ('def f(x): return [0]*10**8', 'assert f(1)==1'),
    ('def f(x): return range(10**12)', 'assert list(f(1))==[1]'),
    ('def f(x):\n    while True: yield 1', 'for y in f(1):\n    assert y==1'),
    ('def f(x, key): \n    while True: key(1)', 'assert f(1, lambda v: v)==1'),
]  # fmt: skip
"""It answers for ever, or with more than can be held."""

NO_VERDICT: list[Case] = [
    ("def f(x): return x", "assert True\nprint(1)"),
    ('def f(x): return x', "open('a.txt','w').write('x')\nassert f(1)==1"),
    ('def f(x): return x', 'import nosuch\nassert f(1)==1'),
    ('def f(x): return x', 'assert True'),
    ('def f(x): return x', 'x=1/0\nassert f(1)==1'),
    ('def f(x): return x', 'm=[]\nfor _ in range(300): m=[m]\nassert f(m)==m'),
]  # fmt: skip
"""The script can judge no program."""
