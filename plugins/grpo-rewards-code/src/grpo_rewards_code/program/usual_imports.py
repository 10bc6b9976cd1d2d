"""The imports that a coding site does for its solutions: starter code says `List[int]` without importing it.

Only for functions that tests call; a script has to import what it uses, as everywhere.
"""

from __future__ import annotations

import re

__all__ = ["with_usual_imports"]

_FROM = {
    "typing": "Any Callable Deque Dict FrozenSet Generator Iterable Iterator List Mapping NamedTuple Optional Sequence "
    "Set Tuple Type TypeVar Union",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce",
    "itertools": "accumulate chain combinations combinations_with_replacement count cycle groupby islice pairwise "
    "permutations product repeat starmap takewhile zip_longest",
    "heapq": "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "math": "ceil comb factorial floor gcd inf isqrt lcm log2 perm sqrt",
    "string": "ascii_letters ascii_lowercase ascii_uppercase",
    "dataclasses": "dataclass",
}
_MODULES = frozenset(
    {
        *("bisect", "collections", "copy", "datetime", "functools", "heapq", "itertools", "math", "operator", "random"),
        *("re", "string", "sys", "typing"),
    }
)
_SOURCE = {name: f"from {module} import {name}" for module, names in _FROM.items() for name in names.split()}
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINES = re.compile(r"^[ \t]*(?:from\s+\S+\s+import\b.*|import\b.*)$", re.MULTILINE)
_FUTURE = re.compile(r"^from[ \t]+__future__[ \t]+import\b", re.MULTILINE)


def with_usual_imports(program: str) -> str:
    """The program with an import in front for each well-known name that it uses and never imports.

    A definition of its own comes later and wins.
    """
    if _FUTURE.search(program):
        return program  # nothing may stand before that
    used = set(_WORD.findall(program))
    imported = {word for line in _DEFINES.findall(program) for word in _WORD.findall(line)}
    missing = used - imported
    lines = [_SOURCE[name] for name in sorted(missing & _SOURCE.keys()) if name not in _MODULES]
    lines += [f"import {name}" for name in sorted(missing & _MODULES)]
    return "\n".join([*lines, program]) if lines else program
