"""`python -m tests.cases.no_new_processes`: score one completion in a process whose every fork fails with EAGAIN.

That is what a trainer meets at its limit of processes. A limit itself would not bind root, so the kernel is told to
refuse the calls. Reads {"reward", "completion", "columns"} and writes {"outcome": …} as JSON.
"""

from __future__ import annotations

import ctypes
import errno
import json
import platform
import struct
import sys

from grpo_core.errors import GrpoError
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import BuildContext, Failed
from tests.cases.scored import group_of, plan_reward

__all__ = ["forbid"]

_CALLS = {"x86_64": (56, 435, (57, 58)), "aarch64": (220, 435, ())}
"""clone, clone3, and those that always make a process."""
_CLONE_THREAD = 0x10000
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def forbid() -> None:
    """Have every call that makes a process fail with EAGAIN, for this thread and all that it starts."""
    clone, clone3, forks = _CALLS[platform.machine()]
    again, unknown = _ERROR | errno.EAGAIN, _ERROR | errno.ENOSYS
    code = [(0x20, 0, 0, 0)]
    for call in forks:
        code += [(0x15, 0, 1, call), (0x06, 0, 0, again)]
    code += [(0x15, 0, 1, clone3), (0x06, 0, 0, unknown)]  # the C library then uses clone, whose flags can be seen
    code += [(0x15, 0, 4, clone), (0x20, 0, 0, 16), (0x45, 0, 1, _CLONE_THREAD), (0x06, 0, 0, _ALLOW)]
    code += [(0x06, 0, 0, again), (0x06, 0, 0, _ALLOW)]
    packed = b"".join(struct.pack("=HBBI", *each) for each in code)
    instructions = ctypes.create_string_buffer(packed, len(packed))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(instructions)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter could not be set")


def main() -> None:
    """Build the reward as a run does, then lose the ability to make processes, then score."""
    case = json.load(sys.stdin)
    reward = plan_reward(case["reward"])
    group = group_of([case["completion"]], case["columns"])
    try:
        scorer = Scorer([reward], ScoringSettings(max_failed_share=1.0), case["columns"], BuildContext())
        forbid()
        step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
        step.add(group)
        (scored,) = step.finish()
        scorer.close()
    except GrpoError as error:
        print(json.dumps({"error": str(error)}))
        return
    (outcome,) = scored.outcomes[reward.name]
    print(json.dumps({"error": outcome.reason} if isinstance(outcome, Failed) else {"outcome": outcome}))


if __name__ == "__main__":
    main()
