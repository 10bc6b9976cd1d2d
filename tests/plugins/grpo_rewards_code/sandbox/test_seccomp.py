"""What filters refuse is tested by attacks; here, that they are well formed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grpo_rewards_code.sandbox.inside import seccomp
from grpo_rewards_code.sandbox.inside.syscalls import NUMBERS, number


@pytest.mark.parametrize("filter_", [seccomp.in_namespaces(), seccomp.alone(), seccomp.own_signals(7)])
def test_every_jump_lands_within_the_filter_and_every_way_ends_in_a_return(filter_: list[tuple[int, ...]]) -> None:
    assert len(filter_) <= 4096
    for place, (code, if_true, if_false, _) in enumerate(filter_):
        assert 0 <= if_true < 256
        assert 0 <= if_false < 256
        if code != 0x06:
            assert place + 1 + max(if_true, if_false) < len(filter_)
    assert filter_[-1][0] == 0x06


def test_every_name_in_the_lists_is_known() -> None:
    for name in (*seccomp.DENIED_IN_NAMESPACES, *seccomp.ALLOWED_ALONE):
        assert name in NUMBERS


def test_what_is_refused_within_namespaces_is_not_allowed_without() -> None:
    assert not set(seccomp.DENIED_IN_NAMESPACES) & set(seccomp.ALLOWED_ALONE)


def test_numbers_are_of_one_call_each() -> None:
    for column in (0, 1):
        known = [numbers[column] for numbers in NUMBERS.values() if numbers[column] is not None]
        assert len(known) == len(set(known))


def test_an_unknown_machine_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(OSError, match="not of vax"):
        number("read")


def test_a_filter_takes_effect_and_stays() -> None:
    script = """
import os
from grpo_rewards_code.sandbox.inside import kernel, seccomp
kernel.set_no_new_privileges()
seccomp.install(seccomp.compiled(seccomp.alone()))
for attempt in (
    lambda: os.fork(),
    lambda: os.chmod("/tmp/x", 0),
    lambda: os.execv("/bin/true", ["true"]),
    lambda: os.open("/tmp/x", os.O_RDONLY | os.O_TRUNC),
    lambda: os.open("/tmp/x", os.O_RDONLY | os.O_TRUNC | os.O_CREAT),
):
    try:
        attempt()
        print("allowed")
    except PermissionError:
        print("refused")
os._exit(0) if print(os.getpid() > 0, flush=True) is None else None
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["refused"] * 5 + ["True"], done.stderr
