"""Fail unless a run's greedy accuracy began high enough and rose enough: `improved.py RUN --start 0.1 --gain 0.05`."""

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    """Compare the first and the last evaluation in the run's metrics.jsonl."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--start", type=float, required=True)
    parser.add_argument("--gain", type=float, required=True)
    wanted = parser.parse_args()
    rows = [json.loads(line) for line in (wanted.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    accuracies = [row["eval/accuracy"] for row in rows if "eval/accuracy" in row]
    before, after = accuracies[0], accuracies[-1]
    print(f"greedy accuracy {before:.3f} -> {after:.3f}")
    return 0 if before >= wanted.start and after - before >= wanted.gain else 1


if __name__ == "__main__":
    sys.exit(main())
