"""How a process ends that code of others has had a say in. Each in a process of its own, which is light: no torch."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.ending import as_error

HEAD = """
import atexit, os, sys, threading, time
from pathlib import Path
import grpo_core.ending as ending
ending.WAIT_S = 0.3
sys.path.insert(0, FOLDER)
atexit.register(print, "exit functions ran")
"""
THREAD = """
import threading, time

def poll():
    while True:
        time.sleep(0.05)

def begin():
    threading.Thread(target=poll, name="poller").start()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "foreign.py").write_text(THREAD, encoding="utf-8")
    return tmp_path


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    head = HEAD.replace("FOLDER", repr(str(folder)))
    command = [sys.executable, "-c", f"{head}\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_thread_that_does_not_end_is_named_and_given_up_and_the_code_stays(folder: Path) -> None:
    done = run(folder, "import foreign; foreign.begin(); print('done'); ending.end(3)")
    assert done.returncode == 3
    assert done.stdout.splitlines() == ["done", "exit functions ran"]
    first, advice = done.stderr.splitlines()
    assert first.startswith(
        "warning: all is done, and after 0.3 s these are still running: thread poller at foreign.py:"
    )
    assert first.endswith(" in poll. They are given up")
    assert "makes it a daemon" in advice


def test_of_many_threads_some_are_named_and_all_are_counted(folder: Path) -> None:
    done = run(folder, "import foreign\nfor _ in range(30): foreign.begin()\nending.end(0)")
    assert done.stderr.count("thread poller") == 5
    assert "; and 25 more. They are given up" in done.stderr


def test_threads_of_a_pool_that_wait_for_work_end_without_a_word(folder: Path) -> None:
    pool = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    done = run(folder, f"{pool}pool.submit(len, '').result(); ending.end(0)")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "exit functions ran\n")


def test_a_pool_that_is_stuck_is_given_up(folder: Path) -> None:
    pool = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    done = run(folder, f"{pool}pool.submit(time.sleep, 1000); ending.end(0)")
    assert done.returncode == 0
    assert "thread ThreadPoolExecutor-0_0" in done.stderr


def test_a_process_that_does_not_end_is_named_and_killed(folder: Path) -> None:
    code = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=[1000], name="helper")
child.start()
print(child.pid, flush=True)
ending.end(4)
"""
    done = run(folder, code)
    assert done.returncode == 4
    pid = done.stdout.split()[0]
    assert f"these are still running: process helper ({pid})" in done.stderr
    assert not Path(f"/proc/{pid}").exists()


def test_exit_functions_that_hang_behind_a_thread_are_left_too(folder: Path) -> None:
    code = (
        "ending._LAST_WORDS_S = 0.3\natexit.register(time.sleep, 1000)\nimport foreign; foreign.begin(); ending.end(2)"
    )
    assert run(folder, code).returncode == 2


@pytest.mark.parametrize(("given", "code"), [(0, 4), (7, 7)])
def test_an_exit_in_the_middle_says_where_it_comes_from_and_is_no_success(folder: Path, given: int, code: int) -> None:
    (folder / "library.py").write_text(f"import os\ndef stop():\n    os._exit({given})\n", encoding="utf-8")
    (folder / "mine.py").write_text("import library\ndef near():\n    library.stop()\n", encoding="utf-8")
    call = "import mine\nwith ending.words_before_the_end(), ending.advising(lambda: 'way on'):\n    mine.near()"
    done = run(folder, call)
    assert done.returncode == code
    error, advice, way_on = done.stderr.splitlines()
    assert error.startswith(f"error: os._exit({given}) ends this process, called at library.py:3 in stop, called by ")
    assert "runs_in: worker" in advice
    assert way_on == "  way on"


def test_children_end_as_they_like_and_so_does_everybody_afterwards(folder: Path) -> None:
    code = """
with ending.words_before_the_end():
    child = os.fork()
    if child == 0:
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(5)
"""
    done = run(folder, code)
    assert (done.returncode, done.stdout, done.stderr) == (5, "0\n", "")


def test_a_crash_in_compiled_code_says_which_function_called_it(folder: Path) -> None:
    (folder / "mine.py").write_text("import ctypes\ndef near():\n    ctypes.string_at(0)\n", encoding="utf-8")
    done = run(folder, "import mine\nwith ending.words_before_the_end():\n    mine.near()")
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert f'File "{folder}/mine.py", line 3 in near' in done.stderr


def test_a_call_of_sys_exit_is_an_error_with_its_place() -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(0)
    error = as_error(ended.value)
    assert error.exit_code == 4
    assert error.message.startswith("code of a plugin, a model or a recipe ends the program: it calls sys.exit(0) (")
    assert "test_ending.py:" in error.message


COMMAND = "ending.WAIT_S = 0.3\nfrom grpo_core.cli.main import main\nsys.argv = ['grpoctl', *ARGUMENTS]\nmain()"
PLUGIN = """
from grpo_core.api import RewardSpec, hookimpl
from pydantic import BaseModel
import sys

class Options(BaseModel):
    def model_post_init(self, context):
        sys.exit(0)

@hookimpl
def grpo_reward_functions():
    own = f"{__file__}:Options"
    yield RewardSpec(name="leaves", summary="It ends the program", target=own, options=own)
"""


def grpoctl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, COMMAND.replace("ARGUMENTS", repr(list(arguments))))


def test_a_command_ends_whatever_a_plugin_leaves_running(folder: Path) -> None:
    plugin = folder / "watcher.py"
    begins = "import foreign\nforeign.begin()\nfrom grpo_core.api import hookimpl\n"
    plugin.write_text(f"{begins}@hookimpl\ndef grpo_run_finished(outcome): pass\n", encoding="utf-8")
    done = grpoctl(folder, "plugins", "list", "--plugin", str(plugin))
    assert done.returncode == 0
    assert "watcher.py" in done.stdout
    assert "these are still running: thread poller at foreign.py:" in done.stderr


def test_a_plugin_cannot_end_a_command_as_if_all_had_gone_well(folder: Path) -> None:
    plugin = folder / "leaver.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    done = grpoctl(folder, "rewards", "try", "leaves", "--completion", "x", "--plugin", str(plugin))
    assert done.returncode == 4
    message = "error: code of a plugin, a model or a recipe ends the program: it calls sys.exit(0) (leaver.py:8)"
    assert message in done.stderr
    plugin.write_text("import os\nos._exit(0)\n", encoding="utf-8")
    done = grpoctl(folder, "plugins", "list", "--plugin", str(plugin))
    assert done.returncode == 4
    assert done.stderr.startswith("error: os._exit(0) ends this process, called at leaver.py:2\n")
