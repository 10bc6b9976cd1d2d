"""One process of a run that has several: `python -m grpo_core.worker RUN`, the same for grpoctl, torchrun and srun.

RUN is a run's folder, or one of its checkpoints; the run begins, or goes on from there. Only rank 0 looks into it for
the plan: the others get that from rank 0. Nothing is discovered or resolved here.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from grpo_core.ending import as_error, end, words_before_the_end
from grpo_core.errors import GrpoError
from grpo_core.openmp import let_waiting_threads_sleep
from grpo_core.orphans import LAUNCHER, die_with_launcher

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one rank to its end; gives its exit code."""
    told = LAUNCHER in os.environ  # by grpoctl, which started it
    die_with_launcher()  # before anything that takes time is imported
    parser = argparse.ArgumentParser(prog="python -m grpo_core.worker", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--plan", type=Path, metavar="FOLDER", help="where the plan.json lies; RUN if not given")
    parser.add_argument("--allow-changes", action="store_true", help="as of grpoctl resume")
    parser.add_argument("--debug", action="store_true", help="show an error's traceback")
    # Some starters append it; what it says is in the environment too.
    parser.add_argument("--local_rank", "--local-rank", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings of a broken connection explain nothing
    from grpo_core.cli.console import print_utf8

    print_utf8()
    let_waiting_threads_sleep()

    from grpo_core.ranks.place import find_place

    rank = 0
    try:
        place = find_place(os.environ)
        rank = place.rank if place else 0
        if rank:
            logging.getLogger("grpo_core").setLevel(logging.ERROR)  # rank 0 warns of the same

        from grpo_core.loop.work import work

        with words_before_the_end():
            return work(given.run, place, plan_folder=given.plan, allow_changes=given.allow_changes, told=told)
    except KeyboardInterrupt:
        return 130
    except (Exception, SystemExit) as error:  # noqa: BLE001  the last place where one can be shown decently
        error = as_error(error) if isinstance(error, SystemExit) else error
        return _show(error, rank, debug=given.debug or "GRPO_DEBUG" in os.environ)


def _show(error: Exception, rank: int, *, debug: bool) -> int:
    """Print an error, on one rank only: the one that it is of, or that found it out. One that is not of our making
    comes with its traceback: a run of many processes is not begun again to see that."""
    from grpo_core.cli.main import show_error
    from grpo_core.ranks.failure import PeerError, failure_of

    if isinstance(error, PeerError) and error.failure.by != rank:
        return error.exit_code
    if debug or not isinstance(error, GrpoError):
        print("".join(traceback.format_exception(error)).rstrip(), file=sys.stderr)
    told = failure_of(error, rank)
    shown = error if isinstance(error, GrpoError) and not rank else GrpoError(told.message, hint=told.hint)
    shown.exit_code = told.exit_code
    return show_error(shown, debug=False)


if __name__ == "__main__":
    code = main()
    if code in (0, 130):
        end(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a process group whose other members are gone may wait for them when it is torn down
