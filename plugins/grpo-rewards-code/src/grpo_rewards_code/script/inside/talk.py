"""The process of one side: of the program, which is executed and then asked, or of the script, which asks.

Place in the flow: child → **talk** → served, run.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

from grpo_rewards_code.sandbox.inside import program
from grpo_rewards_code.script.inside.run import run_script
from grpo_rewards_code.script.inside.served import reader, serve, writer

__all__ = ["KINDS", "run"]

KINDS = ("asked", "script")


def run(work: Mapping[str, Any], told: BinaryIO, result: int, largest_bytes: int) -> NoReturn:
    """Do one side's part, and end the process."""
    leave = os._exit
    program.open_streams()
    sys.set_int_max_str_digits(0)
    read, write = reader(told), writer(result)
    code = 0
    try:
        if work["kind"] == "script":
            run_script(work, read, write, largest_bytes)
        else:
            gc.enable()
            module = program.as_module(work["program"], "solution")
            serve(module, read, write, largest_bytes, work["call_cpu_s"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001  it is the program's, whatever it is
        program.print_error(error)
        code = 1
    leave(code & 0xFF)
