"""Scenes of `rank_scenes.py` on real ranks."""

from __future__ import annotations

from tests.ranks import end_ranks, start_ranks

SCENES = "tests.plugins.grpo_trainer_deepspeed.rank_scenes"
LIMIT_S = 280.0
"""For all of a scene, on a machine that is busy."""


def run_scene(name: str, *arguments: object, count: int = 2) -> None:
    """Run a scene to its end; it must end well on every rank."""
    started = start_ranks(count, f"{SCENES}:{name}", *arguments, limit_s=LIMIT_S)
    ran = end_ranks(started, timeout_s=LIMIT_S)
    assert all(each.returncode == 0 for each in ran), "\n".join(each.stderr[-4000:] for each in ran)
