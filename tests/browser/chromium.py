"""A real browser for tests: Debian's chromium, headless, spoken to over its own debugging pipe. No other package.

Example: `with open_browser() as browser: page = browser.open(path); page.evaluate("document.title")`
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "about:blank")


def find_chromium() -> str:
    """Its command; without one the test is skipped, and fails where everything must run."""
    for name in _NAMES:
        if (path := shutil.which(name)) is not None:
            return path
    message = f"no {' or '.join(_NAMES)} is installed (Debian: apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str, *, scripts: bool) -> None:
        self._browser = browser
        self._session = session
        self._scripts = scripts

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A method of the debugging protocol."""
        return self._browser.call(method, session=self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The value of some JavaScript; an exception in it is an error here."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description", found))
        return found["result"].get("value")

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Give the window a size, and a colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        if self._scripts:  # without them the browser never says
            self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def hover(self, selector: str, *, share: float = 0.5) -> None:
        """Move the mouse over an element, at this share of its width."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center', "
            "behavior: 'instant'}); const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
        )
        x, y = box[0] + box[2] * share, box[1] + box[3] / 2
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """Write what is to be seen, or the whole page, as PNG."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))
        return path

    @property
    def complaints(self) -> list[str]:
        """What the browser's console and network said since the page was opened: errors, refusals, requests."""
        return self._browser.complaints


class Browser:
    """A running chromium."""

    def __init__(self, process: subprocess.Popen[bytes], reads: int, writes: int) -> None:
        self.process = process
        self.complaints: list[str] = []
        self._reads = os.fdopen(reads, "rb")
        self._writes = os.fdopen(writes, "wb", buffering=0)
        self._number = 0

    def open(self, path: Path, *, scripts: bool = True) -> Page:
        """Open a file in a new tab and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, scripts=scripts)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.complaints.clear()
        page.call("Page.navigate", url=path.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        return page

    def call(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a message and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._writes.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        found: dict[str, Any] = answer["result"]
        return found

    def close(self) -> None:
        """End it."""
        self.call("Browser.close")
        self.process.wait(20)
        self._reads.close()
        self._writes.close()

    def _wait_for(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> dict[str, Any]:
        parts = []
        while (byte := self._reads.read(1)) != b"\0":
            if not byte:
                raise AssertionError("chromium is gone")
            parts.append(byte)
        message: dict[str, Any] = json.loads(b"".join(parts))
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(parameters["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console: {parameters['args']}")
            case "Network.requestWillBeSent" if not parameters["request"]["url"].startswith("file:"):
                self.complaints.append(f"request: {parameters['request']['url']}")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start chromium, and end it."""
    command = find_chromium()
    from_us, to_browser = os.pipe()
    from_browser, to_us = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Chromium reads what it is told on descriptor 3 and answers on 4; only a shell can put pipes just there.
        placed = f'exec "$@" 3<&{from_us} 4>&{to_us}'
        process = subprocess.Popen(
            ["bash", "-c", placed, "bash", command, f"--user-data-dir={profile}", *_FLAGS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(from_us, to_us),
        )
        os.close(from_us)
        os.close(to_us)
        browser = Browser(process, from_browser, to_browser)
        try:
            yield browser
            browser.close()
        finally:
            process.kill()
            process.wait()
