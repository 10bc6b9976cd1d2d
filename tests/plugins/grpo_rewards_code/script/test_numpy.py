"""Scripts that compare arrays, where programs and scripts may import numpy."""

from __future__ import annotations

import asyncio
import sysconfig
from pathlib import Path
from typing import Literal

import pytest

from grpo_rewards_code.executor.make import ExecutorSetupError, make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from tests.plugins.grpo_rewards_code.places import plan_for
from tests.plugins.grpo_rewards_code.talks import payment, talks

RIGHT = "import numpy as np\ndef double(x):\n    return np.asarray(x) * 2\ndef grow(a):\n    a += 1\n"
WRONG = RIGHT.replace("* 2", "* 3").replace("+= 1", "+= 2")
SCRIPTS = [
    "import numpy as np\nassert np.allclose(double([1, 2]), [2, 4])",
    "import numpy as np\nassert (double(np.array([1, 2])) == np.array([2, 4])).all()",
    "import numpy as np\nnp.testing.assert_allclose(double(np.array([[1.5]])), [[3.0]])",
    "import numpy as np\na = np.array([1, 2])\ngrow(a)\nassert a.tolist() == [2, 3]",
    "import numpy as np\nassert double(np.float64(2.0)) == 4.0",
    "assert double([1, 2]).tolist() == [2, 4]",
    "import numpy as np\nassert np.array_equal(double(np.arange(3)), np.array([0, 2, 4]))\n"
    "assert double(np.arange(3)).shape == (3,)",
]


@pytest.mark.parametrize(("isolation", "mode"), [("bubblewrap", "nested"), ("landlock", "alone")])
def test_arrays_are_compared(isolation: Literal["bubblewrap", "landlock"], mode: Literal["nested", "alone"]) -> None:
    pytest.importorskip("numpy")
    plan_for(mode)
    executor = make_executor(ExecutorOptions(import_folders=(sysconfig.get_path("purelib"),), isolation=isolation))
    found = talks(executor, [(program, script) for program in (RIGHT, WRONG) for script in SCRIPTS])
    asyncio.run(executor.aclose())
    assert [payment(one) for one in found] == [1] * len(SCRIPTS) + [0] * len(SCRIPTS), found


def test_a_folder_that_programs_could_not_see_is_refused() -> None:
    plan_for("nested")
    with pytest.raises(
        ExecutorSetupError, match="import_folders: /tmp is below /tmp, where every program has a folder"
    ):
        make_executor(ExecutorOptions(import_folders=(str(Path("/tmp")),), isolation="bubblewrap"))
