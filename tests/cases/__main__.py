"""`python -m tests.cases FILE [--area math] [--json OUT]`: one line a failing case, then a table.

Exits with 1 when a case failed, with 0 when none did; cases whose part does not exist yet are counted apart.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.cases.bank import BANK, Verdict, judge, read_cases

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases of a file."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=BANK, help="cases, one JSON object a line")
    parser.add_argument("--area", action="append", help="only this area; repeatable")
    parser.add_argument("--json", type=Path, dest="out", help="write every verdict to this file")
    options = parser.parse_args(arguments)
    logging.getLogger("grpo_core").addHandler(logging.NullHandler())  # cases that warn are meant to
    verdicts = []
    for case in read_cases(options.file):
        if not options.area or case["area"] in options.area:
            verdicts.append(judge(case))
            if verdicts[-1].status == "failed":
                print(f"{case['id']} ({case['area']}, {case['fault']}): {verdicts[-1].message}", flush=True)
    if options.out:
        options.out.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1), encoding="utf-8")
    print_table(verdicts)
    return int(any(verdict.status == "failed" for verdict in verdicts))


def print_table(verdicts: Sequence[Verdict]) -> None:
    """Area, passed, failed, not yet; and which parts the last ones wait for."""
    counts = Counter((verdict.area, verdict.status) for verdict in verdicts)
    row = "{:<12} {:>8} {:>8} {:>8}"
    print(row.format("area", "passed", "failed", "not yet"))
    for area in sorted({verdict.area for verdict in verdicts}):
        print(row.format(area, *(counts[area, status] for status in ("passed", "failed", "not yet"))))
    totals = Counter(verdict.status for verdict in verdicts)
    print(row.format("all", totals["passed"], totals["failed"], totals["not yet"]))
    missing = Counter(verdict.message for verdict in verdicts if verdict.status == "not yet")
    if missing:
        print("not yet: " + ", ".join(f"{part} ({count})" for part, count in sorted(missing.items())))


if __name__ == "__main__":
    sys.exit(main())
