from __future__ import annotations

from pathlib import Path

from grpo_core.plugins.airlock import prove
from grpo_core.plugins.health import health_of
from grpo_core.plugins.verdicts import Admitted, Candidate
from tests.core.plugins.installed import write_plugin


def _health(folder: Path, body: str) -> tuple[str, ...]:
    source = f"""
        from grpo_core.api import hookimpl

        @hookimpl
        def grpo_health():
            {body}
    """
    place = str(write_plugin(folder, source))
    verdict = prove(Candidate(distribution="grpo-acme", version="1", modules=(place,)))
    assert isinstance(verdict, Admitted), verdict
    return health_of(verdict)


def test_lines_come_in_order_and_are_lines(tmp_path: Path) -> None:
    assert _health(tmp_path, "yield 'one'; yield 'two\\n  parts'") == ("one", "two parts")


def test_a_plugin_is_asked_only_when_its_health_is(tmp_path: Path) -> None:
    flag = tmp_path / "asked"
    source = f"""
        from pathlib import Path
        from grpo_core.api import hookimpl

        @hookimpl
        def grpo_health():
            Path({str(flag)!r}).touch()
            return ["asked"]
    """
    place = str(write_plugin(tmp_path, source))
    verdict = prove(Candidate(distribution="grpo-acme", version="1", modules=(place,)))
    assert isinstance(verdict, Admitted)
    assert not flag.exists()
    assert health_of(verdict) == ("asked",)


def test_a_plugin_that_cannot_say_is_reported_and_ends_nothing(tmp_path: Path) -> None:
    (line,) = _health(tmp_path, "raise OSError('no such tool')")
    assert line.startswith("its grpo_health fails: OSError: no such tool")


def test_a_plugin_that_says_nothing_or_no_end_of_it_is_no_problem(tmp_path: Path) -> None:
    assert _health(tmp_path, "return None") == ()
    (tmp_path / "more").mkdir()
    assert len(_health(tmp_path / "more", "while True: yield 'again'")) == 100
