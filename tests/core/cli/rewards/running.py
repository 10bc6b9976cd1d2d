"""Runs `grpoctl rewards` in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from grpo_core.errors import GrpoError


def rewards(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    """What a command printed; it must end with `code`."""
    ran = CliRunner().invoke(build_app(), ["rewards", *arguments], input=stdin, catch_exceptions=False)
    assert ran.exit_code == code, ran.output
    return ran


def facts(*arguments: str, code: int = 0) -> Any:
    """What a command says as JSON."""
    return json.loads(rewards(*arguments, "--json", code=code).stdout)


def error(kind: type[GrpoError], *arguments: str) -> str:
    """What a command that cannot be done raises, as text."""
    with pytest.raises(kind) as caught:
        rewards(*arguments)
    return str(caught.value)
