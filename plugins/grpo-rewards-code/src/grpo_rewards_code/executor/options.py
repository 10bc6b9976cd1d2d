"""What can be set about where programs run: the section `executor` of the reward's options."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["E2bOptions", "ExecutorOptions", "Judge0Options"]


class Judge0Options(BaseModel):
    """A Judge0 service, where `executor.kind` is `judge0`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    url: str | None = None
    """Where the service is, for instance http://judge0.example:2358. Needed."""
    headers_from: dict[str, str] = {}
    """Header -> environment variable that holds its value, for instance {X-Auth-Token: JUDGE0_TOKEN}. Keys do not
    belong in recipes."""
    language_id: int = Field(default=71, ge=1, le=10**6)
    """The service's number for Python, 3.8 or newer (`GET /languages` lists them)."""
    batch_size: int = Field(default=20, ge=1, le=10_000)
    """How many runs are submitted at once; the service has a largest number too."""
    poll_interval_s: Annotated[float, Field(ge=1e-3, le=1e6)] = 0.5
    """How long to wait before asking again whether runs have ended."""
    request_timeout_s: Annotated[float, Field(ge=1e-3, le=1e6)] = 30.0
    """How long one answer may take."""
    retry_for_s: Annotated[float, Field(ge=0, le=1e6)] = 120.0
    """How long to try again when the service is busy or does not answer, in all."""
    queue_timeout_s: Annotated[float, Field(ge=1e-3, le=1e6)] = 600.0
    """How long submitted runs may take, waiting in the service's queue included."""


class E2bOptions(BaseModel):
    """The E2B service, where `executor.kind` is `e2b`; its key comes from the environment variable E2B_API_KEY."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    template: str | None = None
    """The template of its sandboxes; it must have `python3`, 3.8 or newer, and `timeout`."""
    sandbox_timeout_s: int = Field(default=600, ge=10, le=10**6)
    """How long the service keeps a sandbox that was forgotten."""
    request_timeout_s: Annotated[float, Field(ge=1e-3, le=1e6)] = 30.0
    """How long one answer may take."""
    retry_for_s: Annotated[float, Field(ge=0, le=1e6)] = 120.0
    """How long to try again when the service limits requests."""


class ExecutorOptions(BaseModel):
    """Where programs run, and how isolated."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    kind: Literal["local", "judge0", "e2b"] = "local"
    """`local`: sandboxes on this machine. `judge0`, `e2b`: those services."""
    isolation: Literal["auto", "bubblewrap", "landlock"] = "auto"
    """Local: what confines programs; `auto` is the strongest that works here."""
    min_isolation: Literal["landlock", "bubblewrap"] = "landlock"
    """Local: the weakest isolation that will do; with less, nothing runs. `landlock`: no network, no file outside, no
    surviving process. `bubblewrap`: namespaces of its own for every run besides."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """How many programs run at a time; default: local, this machine's cores divided among its ranks, and no more than
    32 times as many; elsewhere 8."""
    interpreter: str | None = None
    """Local: the Python, 3.11 or newer, that runs programs; default: this one."""
    import_folders: tuple[str, ...] = ()
    """Local: folders that programs may import from, read-only; without any, only the standard library."""
    judge0: Judge0Options = Judge0Options()
    """The Judge0 service."""
    e2b: E2bOptions = E2bOptions()
    """The E2B service."""
