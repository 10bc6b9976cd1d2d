"""docs/report.md lists every finding that the report can have."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
_RULE = re.compile(r'rule="([a-z-]+)"(?: if \w+ else "([a-z-]+)")?')


def test_the_table_has_every_rule_and_no_other() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "core/src/grpo_core/report/findings").glob("*.py")
    )
    rules = {name for found in _RULE.findall(sources) for name in found if name}
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(rules)
