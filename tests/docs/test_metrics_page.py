"""docs/metrics.md names every metric that code can produce: the names are read off the sources of core."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
NAME = re.compile(
    r'f?"((?:data|tasks|reward|rewards|groups|completions|policy|sampler|trainer|time|throughput|eval|health)/[^"\s]+)"'
)
STAGES = re.compile(r'clock\("(\w+)"\)')


def documented() -> set[str]:
    return {re.sub(r"<\w+>", "*", name) for name in re.findall(r"`([\w@<>]+/[\w@<>/]+)`", PAGE)}


def produced() -> set[str]:
    names = set()
    for path in (ROOT / "core" / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names |= {re.sub(r"\{[^}]*\}", "*", name) for name in NAME.findall(text)}
        names |= {f"time/{stage}_s" for stage in STAGES.findall(text)}
    return {name for name in names if not name.endswith(("/", ".jsonl")) and name != "time/*_s"}


def test_every_metric_in_the_sources_is_documented() -> None:
    assert produced() - documented() == set()


def test_no_metric_is_documented_that_nothing_produces() -> None:
    assert {name for name in documented() if not name.endswith("*")} - produced() == set()
