from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core import __version__
from grpo_core.errors import PluginError, UnknownComponent, UsageError
from grpo_core.plugins.host import PluginHost, warn_quarantined
from grpo_core.plugins.targets import build_target
from tests.core.plugins.installed import install, one_reward, write_plugin


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPO_DISABLE_PLUGINS", raising=False)
    monkeypatch.delenv("GRPO_STRICT_PLUGINS", raising=False)


def names(plugins: object) -> list[str]:
    return [plugin.distribution for plugin in plugins]  # type: ignore[attr-defined]


def test_core_is_admitted_like_everyone_and_its_components_can_be_named() -> None:
    host = PluginHost.load()
    assert "grpo-core" in names(host.admitted)
    assert host.catalog.get("trainer", "torch").qualified_name == "grpo-core/torch"
    assert host.catalog.get("reward", "format").version == __version__


def test_a_broken_plugin_takes_nothing_else_down(site: Path) -> None:
    install(site, "grpo-host-good", one_reward("host_good"))
    install(site, "grpo-host-bad", "1 / 0")
    host = PluginHost.load()
    assert host.catalog.get("reward", "host_good").distribution == "grpo-host-good"
    assert names(host.quarantined) == ["grpo-host-bad"]
    with pytest.raises(UnknownComponent) as caught:
        host.catalog.get("reward", "host_bad")
    assert "grpo-host-bad 1.0: ZeroDivisionError: division by zero (grpo_host_bad.py:1)" in (caught.value.hint or "")


def test_each_broken_plugin_costs_one_line_on_stderr(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "grpo-host-line", "\n1 / 0")
    warn_quarantined(PluginHost.load())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "grpo-host-line 1.0 is not loaded: ZeroDivisionError: division by zero (grpo_host_line.py:2). "
        "Details: grpoctl plugins doctor grpo-host-line\n"
    )


def test_plugins_are_switched_off_by_environment_and_by_recipe(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpo-host-a", "grpo-host-b"):
        install(site, name, "raise AssertionError('imported')")
    monkeypatch.setenv("GRPO_DISABLE_PLUGINS", " Grpo_Host.A, ")
    host = PluginHost.load(disable=["grpo-host-b"])
    assert names(host.blocked) == ["grpo-host-a", "grpo-host-b"]
    assert host.quarantined == ()
    assert host.warnings == ()
    with pytest.raises(UnknownComponent, match="host_a") as caught:
        host.catalog.get("reward", "host_a")
    assert "grpo-host-a 1.0: switched off" in (caught.value.hint or "")


def test_a_name_to_switch_off_that_nothing_has_is_a_warning(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "grpo-host-named", one_reward("host_named"))
    monkeypatch.setenv("GRPO_DISABLE_PLUGINS", "grpo-host-nmaed")
    warn_quarantined(PluginHost.load())
    assert capsys.readouterr().err == (
        "warning: no plugin 'grpo-host-nmaed' to switch off; did you mean 'grpo-host-named'?\n"
    )


def test_core_cannot_be_switched_off() -> None:
    with pytest.raises(UsageError, match="grpo-core cannot be switched off"):
        PluginHost.load(disable=["Grpo.Core"])


def test_a_file_is_a_plugin_too_and_its_targets_lead_into_it(tmp_path: Path) -> None:
    file = write_plugin(
        tmp_path,
        """
        from grpo_core.api import RewardSpec, hookimpl

        @hookimpl
        def grpo_reward_functions():
            yield RewardSpec(name="brevity", summary="Short", target=f"{__file__}:brevity")

        def brevity(completions):
            return [1.0 for _ in completions]
        """,
        name="mine.py",
    )
    host = PluginHost.load(files=[file])
    entry = host.catalog.get("reward", "mine.py/brevity")
    assert entry == host.catalog.get("reward", "brevity")
    assert (entry.qualified_name, entry.version) == ("mine.py/brevity", "(file)")
    reward = build_target(entry.spec.target, None, {}, None)  # type: ignore[union-attr]
    assert callable(reward)
    assert reward(["a"]) == [1.0]


def test_a_broken_file_is_quarantined_like_any_plugin(tmp_path: Path) -> None:
    file = write_plugin(tmp_path, "def grpo_recipes(): ...", name="mine.py")
    (fault,) = PluginHost.load(files=[file]).quarantined
    assert fault.line == "mine.py (file) is not loaded: grpo_recipes is not marked as a hook (mine.py:1)"


def test_a_file_that_is_not_there_and_two_of_one_name_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--plugin .*absent.py: there is no such Python file"):
        PluginHost.load(files=[tmp_path / "absent.py"])
    (tmp_path / "other").mkdir()
    same = [write_plugin(folder, "", name="mine.py") for folder in (tmp_path, tmp_path / "other")]
    with pytest.raises(UsageError, match=r"--plugin: two files are called mine.py"):
        PluginHost.load(files=same)


def test_what_a_run_requires_and_has_is_fine(site: Path, tmp_path: Path) -> None:
    install(site, "grpo-host-needed", one_reward("host_needed"), version="1.5")
    PluginHost.load(require=["grpo-host-needed>=1.2,<2", "Grpo_Core", "grpo-host-needed"])


def test_everything_required_that_is_not_there_is_named_with_its_reason(site: Path) -> None:
    install(site, "grpo-host-old", one_reward("host_old"), version="1.0")
    install(site, "grpo-host-broken", "1 / 0")
    install(site, "grpo-host-off", one_reward("host_off"))
    with pytest.raises(PluginError) as caught:
        PluginHost.load(
            require=["grpo-host-old>=2", "grpo-host-broken", "grpo-host-off", "grpo-absent>=1", "pluggy"],
            disable=["grpo-host-off"],
        )
    head, *problems = caught.value.message.split("\n  ")
    assert head == "a plugin that this run requires is not there:"
    assert problems[0] == "grpo-host-old is 1.0, needed is grpo-host-old>=2: pip install 'grpo-host-old>=2'"
    assert problems[1].startswith("grpo-host-broken 1.0 is not loaded: ZeroDivisionError")
    assert problems[2] == "grpo-host-off 1.0 is not loaded: switched off"
    assert problems[3] == "grpo-absent is not installed: pip install 'grpo-absent>=1'"
    assert problems[4].startswith("pluggy ")
    assert problems[4].endswith(" is installed, but it is not a plugin")


def test_a_malformed_requirement_is_an_error() -> None:
    with pytest.raises(UsageError, match="'grpo-acme>' is not a requirement") as caught:
        PluginHost.load(require=["grpo-acme>"])
    assert caught.value.hint == "Write a name and versions: grpo-acme>=1.2"


def test_in_strict_mode_the_first_broken_plugin_raises_with_its_traceback(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "grpo-host-strict", "def grpo_x(): ...\n1 / 0")
    monkeypatch.setenv("GRPO_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"grpo-host-strict 1.0 is not loaded: ZeroDivisionError") as caught:
        PluginHost.load()
    assert 'grpo_host_strict.py", line 2, in <module>' in caught.value.message


def test_a_broken_core_is_not_survivable(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "grpo-core", "1 / 0", module="a_broken_core", version="9.9")
    with pytest.raises(PluginError, match=r"grpo-core 9.9 is not loaded: ZeroDivisionError") as caught:
        PluginHost.load()
    assert caught.value.hint == "This is a fault of grpo-core itself."


def test_a_core_that_is_not_installed_says_so(site: Path) -> None:
    install(site, "grpo-core", module="hides_core", group="console_scripts")
    with pytest.raises(PluginError, match="grpo-core is not installed, only its files are on the path"):
        PluginHost.load()
