"""For all tests: hypothesis does not judge how fast the machine is, and torch's threads wait as they do in grpoctl."""

from hypothesis import HealthCheck, settings

from grpo_core.openmp import let_waiting_threads_sleep

let_waiting_threads_sleep()
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
