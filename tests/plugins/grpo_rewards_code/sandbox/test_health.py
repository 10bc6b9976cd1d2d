from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.plugins.airlock import prove
from grpo_core.plugins.health import health_of
from grpo_core.plugins.verdicts import Admitted, Candidate
from grpo_rewards_code.sandbox import choose
from grpo_rewards_code.sandbox.health import health
from grpo_rewards_code.sandbox.inside import landlock
from tests.plugins.grpo_rewards_code.places import need_bubblewrap, plan_for


@pytest.fixture(autouse=True)
def _nothing_tried_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_WORKED", {})


def test_the_doctor_says_how_programs_would_run() -> None:
    need_bubblewrap()
    plugin = prove(Candidate(distribution="grpo-rewards-code", version="1", modules=("grpo_rewards_code.plugin",)))
    assert isinstance(plugin, Admitted)
    (line,) = health_of(plugin)
    assert line.startswith("programs run here under bubblewrap: no network, no file outside")


def test_with_weaker_isolation_it_says_how_to_get_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan_for("alone")
    monkeypatch.setenv("PATH", str(tmp_path))
    first, second = health()
    assert first.startswith("programs run here under landlock (ABI ")
    assert second.startswith("to isolate them more: install bubblewrap (Debian and Ubuntu: apt-get")


def test_without_any_isolation_it_says_that_none_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    (line,) = health()
    assert line.startswith("programs cannot be run in isolation on this machine")
