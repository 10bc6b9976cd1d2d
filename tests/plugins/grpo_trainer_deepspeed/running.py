"""Scenes of `rank_scenes.py` on real ranks."""

from __future__ import annotations

from tests.ranks import LONG_S, end_ranks, start_ranks

SCENES = "tests.plugins.grpo_trainer_deepspeed.rank_scenes"


def run_scene(name: str, *arguments: object, count: int = 2) -> None:
    """Run a scene to its end; it must end well on every rank."""
    started = start_ranks(count, f"{SCENES}:{name}", *arguments, limit_s=LONG_S)
    ran = end_ranks(started)
    assert all(each.returncode == 0 for each in ran), "\n".join(each.stderr[-4000:] for each in ran)
