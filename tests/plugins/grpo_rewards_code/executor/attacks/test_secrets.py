"""No program reads what is not its own: the environment, other processes, what is expected of it."""

from __future__ import annotations

import pytest

from tests.plugins.grpo_rewards_code.places import Place


def test_the_environment_holds_no_secret(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_TEST_SECRET", "hunter")
    program = (
        "import os\nprint(os.environ)\ntry:\n    print(open('/proc/self/environ').read())\nexcept OSError:\n    pass"
    )
    text = place.says(program)
    assert "SANDBOX_TEST_SECRET" not in text
    assert "hunter" not in text


def test_no_other_process_can_be_read(place: Place) -> None:
    program = """
import os
found = []
for pid in range(1, 100_000):
    for name in ("environ", "cmdline", "maps", "mem", "fd/0"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if name == "mem":
                    file.seek(4096)
                found.append((pid, name, file.read(200)))
        except (OSError, ValueError):
            if name == "environ" and not os.path.exists(f"/proc/{pid}"):
                break
print([each for each in found if each[0] != os.getpid() and b"bootstrap" not in each[2] and each[2]])
"""
    others = place.says(program)
    assert "pytest" not in others
    assert "environ" not in others
    assert "'mem'" not in others


def test_the_program_is_not_told_what_is_expected_by_any_frame_or_object(place: Place) -> None:
    program = """
import gc, sys
found = []
frame = sys._getframe()
while frame:
    found += [name for name in (*frame.f_locals, *frame.f_globals) if "expect" in name.lower()]
    frame = frame.f_back
print(sorted(set(found)))
"""
    assert place.says(program) == "[]"
