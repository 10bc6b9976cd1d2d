"""For all tests: hypothesis does not judge how fast the machine is, torch's threads wait as they do in grpoctl, and
what may take longest begins first, so that workers end together."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from grpo_core.openmp import let_waiting_threads_sleep

let_waiting_threads_sleep()
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a limit of their own come first, the highest before the others."""
    limits: defaultdict[Path, float] = defaultdict(float)
    for item in items:
        for mark in item.iter_markers("timeout"):
            limits[item.path] = max(limits[item.path], *mark.args)
    items.sort(key=lambda item: -limits[item.path])
