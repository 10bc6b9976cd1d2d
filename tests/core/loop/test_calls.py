"""What is known of a trainer's weights from the calls that it got."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grpo_core.errors import CheckpointError, TrainerError
from grpo_core.loop.calls import TrainerCalls


class Backend:
    """Fails where it is told to."""

    device = "cpu"

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def _act(self, *arguments: object, **more: object) -> tuple[object, ...]:
        if self.error is not None:
            raise self.error
        return (*arguments, *more.items())

    logprobs = update = restore = save = export = export_adapter = _act

    def iter_weights(self) -> Iterator[tuple[str, int]]:
        yield from (("a", 1), ("b", 2))


@pytest.fixture
def backend() -> Any:
    return Backend()


@pytest.fixture
def calls() -> TrainerCalls:
    return TrainerCalls()


def test_everything_is_passed_on(backend: Any, calls: TrainerCalls) -> None:
    trainer: Any = calls.around(backend)
    assert trainer.logprobs("batch", of="policy") == ("batch", ("of", "policy"))
    assert list(trainer.iter_weights()) == [("a", 1), ("b", 2)]
    assert trainer.device == "cpu"
    assert getattr(trainer, "module", None) is None
    assert (calls.done, calls.is_inside, calls.has_changed) == (2, False, False)


@pytest.mark.parametrize("name", ["update", "restore"])
@pytest.mark.parametrize("error", [None, TrainerError("no")])
def test_what_changes_weights_is_noted_before_it_does(
    backend: Any, calls: TrainerCalls, name: str, error: Exception | None
) -> None:
    backend.error = error
    try:
        getattr(calls.around(backend), name)("batch")
    except TrainerError:
        assert calls.is_inside
    assert calls.has_changed


@pytest.mark.parametrize("name", ["save", "export", "export_adapter"])
def test_a_file_that_cannot_be_written_cuts_no_call_off(backend: Any, calls: TrainerCalls, name: str) -> None:
    trainer = calls.around(backend)
    for error in (OSError(28, "full"), CheckpointError("full")):
        backend.error = error
        with pytest.raises(type(error)):
            getattr(trainer, name)("folder")
    assert (calls.done, calls.is_inside) == (2, False)
    backend.error = RuntimeError("a fault")
    with pytest.raises(RuntimeError):
        getattr(trainer, name)("folder")
    assert calls.is_inside


def test_a_stream_that_is_not_read_to_its_end_was_cut_off(backend: Any, calls: TrainerCalls) -> None:
    stream = calls.around(backend).iter_weights()
    next(stream)
    assert calls.is_inside
    del stream
    assert calls.is_inside
