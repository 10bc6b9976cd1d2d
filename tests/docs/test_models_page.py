"""docs/models.md lists every family whose decoding is tested, beside the way that the test expects."""

from __future__ import annotations

from pathlib import Path

from tests.core.rollout.many_models import WAYS
from tests.tiny_models import FAMILIES

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def listed() -> dict[str, str]:
    """Family -> way."""
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split("|")] for line in PAGE.splitlines() if line.startswith("|")
    ]
    return {name: row[0] for row in rows if row[0] in WAYS.values() for name in row[2].split(", ")}


def test_the_families_on_the_page_are_those_that_are_tested() -> None:
    found = listed()
    usual = {name for name in found if name.lower().replace(" ", "") in FAMILIES}
    assert len(usual) == len(FAMILIES)
    assert {found[name] for name in usual} == {"shared prefixes"}
    assert {name: way for name, way in found.items() if name not in usual} == WAYS
