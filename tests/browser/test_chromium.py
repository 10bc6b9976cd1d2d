"""Where there is no browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.chromium import find_chromium


def test_without_a_browser_tests_are_skipped_and_fail_in_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        find_chromium()
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="no chromium or"):
        find_chromium()
