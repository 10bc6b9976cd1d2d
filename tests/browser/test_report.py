"""The report in a real browser: it draws, it answers to mouse and keyboard, it fits, and nothing of a model's runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.report.write import write_report
from tests.browser.chromium import Browser, Page, open_browser
from tests.core.report.making import answer_row, learning_run, plan_of, write_run

pytestmark = pytest.mark.slow

WIDTHS = (360, 480, 768, 1024, 1280, 1600)
HOSTILE = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'><b id=\"bold\">{{script}}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    slow = plan_of({"trainer.learning_rate": "--learning-rate"}, trainer={"learning_rate": 1e-5})
    one = learning_run(folder / "one", steps=80, plan=slow)
    two = learning_run(folder / "two", steps=60, seed=1, best=0.4)
    write_report([one], folder / "one.html")
    write_report([one, two], folder / "both.html")
    return {"one": folder / "one.html", "both": folder / "both.html"}


@pytest.fixture
def one(browser: Browser, reports: dict[str, Path]) -> Page:
    return opened(browser, reports["one"])


@pytest.fixture
def both(browser: Browser, reports: dict[str, Path]) -> Page:
    return opened(browser, reports["both"])


def opened(browser: Browser, path: Path, *, scripts: bool = True) -> Page:
    page = browser.open(path, scripts=scripts)
    page.resize(1280)
    return page


def texts(page: Page, selector: str) -> list[str]:
    found = page.evaluate(f"[...document.querySelectorAll({selector!r})].map(node => node.textContent)")
    assert isinstance(found, list)
    return found


def choose(page: Page, label: str, value: str, *, within: str = "body") -> None:
    """Set the control with this label, as a person does."""
    page.evaluate(
        f"""(() => {{
        const label = [...document.querySelectorAll({within!r} + ' label')]
            .find(node => node.textContent.startsWith({label!r}));
        const control = label.querySelector('input, select');
        if (control.type === 'checkbox') control.checked = {value!r} === 'on';
        else control.value = {value!r};
        const picked = control.tagName === 'SELECT' || control.type === 'checkbox';
        control.dispatchEvent(new Event(picked ? 'change' : 'input'));
        }})()"""
    )
    page.settle()


def chart(title: str) -> str:
    """JavaScript that finds a chart's figure."""
    return f"[...document.querySelectorAll('.chart')].find(f => f.querySelector('h4').textContent === {title!r})"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["one", "both"])
def test_nothing_overflows_at_any_width_and_nothing_is_asked_of_the_network(
    browser: Browser, reports: dict[str, Path], name: str, dark: bool
) -> None:
    page = opened(browser, reports[name])
    for width in WIDTHS:
        page.resize(width, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
        wide = page.evaluate(
            "[...document.querySelectorAll('.chart svg')].some(s => s.getBoundingClientRect().right > innerWidth)"
        )
        assert not wide, width
    assert page.complaints == []


def test_every_chart_is_drawn_with_a_line_and_an_axis(one: Page) -> None:
    drawn = one.evaluate(
        "[...document.querySelectorAll('.chart:not([hidden])')].map(f => [f.querySelector('h4').textContent, "
        "f.querySelectorAll('path.line').length, f.querySelectorAll('.tick').length])"
    )
    assert len(drawn) > 20
    assert {title for title, _, _ in drawn} >= {
        "Total reward",
        "sum_reward",
        "KL",
        "Gradient norm",
        "Length",
        "Accuracy",
    }
    assert all(lines >= 1 and ticks >= 3 for _, lines, ticks in drawn), drawn


def test_what_never_changes_is_named_in_its_group(one: Page) -> None:
    said = texts(one, ".constant")
    assert any("completions/truncated_share = 0.02" in text for text in said)
    assert any("eval/prompts = 64" in text for text in said)


def test_lines_follow_their_numbers(one: Page) -> None:
    path = one.evaluate(f"{chart('Learning rate')}.querySelector('path.line.faint, path.line').getAttribute('d')")
    heights = [float(point.split(" ")[1]) for point in path.replace("M", "").split("L")]
    assert len(heights) == 80
    assert heights[0] > heights[5] > heights[9]
    assert heights[10:] == [heights[10]] * 70


def test_hovering_reads_every_value_at_a_step_and_moves_the_cursor_of_all_charts(one: Page) -> None:
    place = one.evaluate(f"{chart('Length')}.id")
    one.hover(f"#{place} .overlay", share=0.5)
    (tip,) = texts(one, ".tip:not([hidden])")
    assert tip.startswith("step 4")
    assert "of those not cut off" in tip
    assert one.evaluate("document.querySelectorAll('.chart .rule').length") > 20


def test_a_chart_is_read_by_the_keyboard(one: Page) -> None:
    one.evaluate(f"{chart('KL')}.querySelector('.frame > svg').focus()")
    one.press("Home")
    assert texts(one, "#announcer") == ["KL, step 1: KL 4e-4"]
    one.press("ArrowRight")
    assert texts(one, "#announcer") == ["KL, step 2: KL 8e-4"]
    one.press("End")
    assert texts(one, "#announcer") == ["KL, step 80: KL 0.032"]
    one.press("Escape")
    assert one.evaluate("document.querySelectorAll('.chart .rule').length") == 0


def test_bands_smoothing_and_the_logarithm_change_the_picture(one: Page) -> None:
    figure = chart("sum_reward")

    def bands() -> list[str]:
        found = one.evaluate(f"[...{figure}.querySelectorAll('.band')].map(b => b.getAttribute('class'))")
        assert isinstance(found, list)
        return found

    assert bands() == ["band inner"]
    choose(one, "Behind the lines", "quantiles")
    assert bands() == ["band outer", "band inner"]
    choose(one, "Behind the lines", "none")
    assert bands() == []
    assert one.evaluate(f"{figure}.querySelectorAll('.line').length") == 2, "the line and, faint, what it smooths"
    choose(one, "Smoothing", "0")
    assert one.evaluate(f"{figure}.querySelectorAll('.line').length") == 1
    gradient = chart("Gradient norm")
    before = one.evaluate(f"{gradient}.querySelector('.line').getAttribute('d')")
    one.evaluate(f"{gradient}.querySelector('.buttons button').click()")
    assert one.evaluate(f"{gradient}.querySelector('.line').getAttribute('d')") != before


def test_a_run_can_be_taken_out_of_all_charts(both: Page) -> None:
    lines = f"{chart('KL')}.querySelectorAll('path.line:not(.faint)').length"
    assert texts(both, ".run") == ["one", "two"]
    assert both.evaluate(lines) == 2
    both.evaluate("document.querySelector('.run').click()")
    assert both.evaluate(lines) == 1
    assert both.evaluate("document.querySelector('.run').getAttribute('aria-pressed')") == "false"


def test_a_finding_leads_to_its_curve(one: Page) -> None:
    one.evaluate("document.querySelector('.finding[data-rule=learning] button').click()")
    assert texts(one, ".chart.flash h4") == ["sum_reward"]


def test_probe_answers_of_chosen_steps_stand_side_by_side(one: Page) -> None:
    chosen = "[...document.querySelectorAll('.heatmap th.chosen')].map(th => th.textContent)"
    assert one.evaluate(chosen) == ["0", "8", "20", "40", "80"]
    assert texts(one, ".probe:first-of-type .cell .answer")[0].endswith("<answer>41</answer>")
    assert texts(one, ".probe:first-of-type .cell .answer")[-1].endswith("<answer>40</answer>")
    one.evaluate("[...document.querySelectorAll('.heatmap thead button')].find(b => b.textContent === '12').click()")
    assert one.evaluate(chosen) == ["0", "8", "12", "20", "40", "80"]
    slider = "document.querySelector('.column-head input[type=range]')"
    one.evaluate(f"{slider}.value = 1; {slider}.dispatchEvent(new Event('input'))")
    assert one.evaluate(chosen) == ["4", "8", "12", "20", "40", "80"]
    one.evaluate("document.querySelector('.column-head .quiet').click()")
    assert one.evaluate(chosen) == ["8", "12", "20", "40", "80"]


def test_probes_are_filtered_by_how_a_score_went_and_by_its_value(one: Page) -> None:
    def shown() -> list[str]:
        return texts(one, ".probe .number")

    assert len(shown()) == 4
    choose(one, "Show", "rose", within="#probes")
    rose = shown()
    choose(one, "Show", "same", within="#probes")
    assert sorted([*rose, *shown()]) == [f"Prompt {number}" for number in (1, 2, 3, 4)]
    assert rose
    assert shown()
    choose(one, "Show", "all", within="#probes")
    choose(one, "Score", "sum_reward", within="#probes")
    choose(one, "at least", "1", within="#probes")
    assert shown() == rose
    choose(one, "Show", "failed", within="#probes")
    assert shown() == []
    choose(one, "Answers", "sampled", within="#probes")
    choose(one, "Show", "all", within="#probes")
    assert set(shown()) >= set(rose)


def test_completions_are_filtered_by_score_failure_length_step_and_text(one: Page) -> None:
    def count() -> str:
        return texts(one, "#completion-view .hint")[0]

    assert count() == "1,280 of 1,280 completions"
    choose(one, "a score failed", "on", within="#completions")
    assert count() == "1 of 1,280 completions"
    assert "sum_reward failed" in texts(one, ".completion")[0]
    assert "ValueError: not a sum" in texts(one, ".completion")[0]
    choose(one, "a score failed", "off", within="#completions")
    choose(one, "Step from", "79", within="#completions")
    assert count() == "32 of 1,280 completions"
    choose(one, "Score", "sum_reward", within="#completions")
    choose(one, "at least", "1", within="#completions")
    right = int(count().split()[0])
    assert 0 < right < 32
    choose(one, "Text", "WHAT IS 80", within="#completions")
    assert 0 < int(count().split()[0]) < right
    choose(one, "cut off", "on", within="#completions")
    assert int(count().split()[0]) < right


def test_the_answers_to_one_prompt_are_shown_together(one: Page) -> None:
    choose(one, "Order", "newest", within="#completions")
    assert texts(one, ".completion header strong")[0] == "step 80"
    one.evaluate("document.querySelector('.completion > .link').click()")
    one.settle()
    assert texts(one, "#completion-view .hint")[0].startswith("4 of 1,280 completions of one group")
    assert len(texts(one, ".completion")) == 4
    one.evaluate("document.querySelector('#completion-view .hint .link').click()")
    assert texts(one, "#completion-view .hint")[0] == "1,280 of 1,280 completions"


def test_settings_show_what_was_set_and_what_differs(both: Page) -> None:
    def shown() -> list[str]:
        found = both.evaluate(
            "[...document.querySelectorAll('.settings tbody tr:not([hidden]) th')].map(t => t.textContent)"
        )
        assert isinstance(found, list)
        return found

    assert shown() == ["trainer.learning_rate"]
    choose(both, "only what somebody set", "off", within="#settings")
    assert len(shown()) > 50
    choose(both, "only what differs", "on", within="#settings")
    assert shown() == ["trainer.learning_rate"]
    choose(both, "only what differs", "off", within="#settings")
    choose(both, "Find", "warmup", within="#settings")
    assert shown() == ["trainer.warmup_updates", "trainer.warmup_share"]


def test_without_javascript_findings_tables_and_settings_are_there(browser: Browser, reports: dict[str, Path]) -> None:
    page = browser.open(reports["one"], scripts=False)
    text = page.evaluate("document.body.innerText")
    assert "It is learning" in text
    assert "eval/tasks/easy/accuracy" in text
    assert "trainer.learning_rate" in text
    assert "JavaScript, which is off here" in text


def test_what_a_model_wrote_is_shown_as_text_and_never_runs(browser: Browser, tmp_path: Path) -> None:
    row = answer_row(completion=HOSTILE, prompt=HOSTILE, sample_id=HOSTILE, columns={HOSTILE: HOSTILE})
    row |= {"scores": {HOSTILE: None}, "failures": {HOSTILE: HOSTILE}, "records": {HOSTILE: HOSTILE}}
    metrics = [{"step": 0, f"eval/{HOSTILE}": 0.5}, {"step": 1, HOSTILE: 0.5, "reward/mean": 0.5}]
    run = write_run(tmp_path / "<b id=bold>", metrics, completions={1: [row]}, probes={0: [row | {"drawn": "greedy"}]})
    write_report([run], tmp_path / "report.html")
    page = opened(browser, tmp_path / "report.html")
    assert page.evaluate("window.owned") is None
    assert page.evaluate("document.querySelectorAll('img, #bold').length") == 0
    assert page.complaints == []
    assert texts(page, "#completions .answer") == [HOSTILE]
    assert texts(page, "#probes .answer") == [HOSTILE]
    assert HOSTILE in texts(page, ".chart h4")


@pytest.mark.parametrize(
    "metrics",
    [
        [{"step": 0, "eval/accuracy": 0.5}],
        [{"step": 1, "reward/mean": 0.5}],
        [{"step": 1, "reward/mean": None}, {"step": 2, "reward/mean": float("nan"), "trainer/grad_norm": -1.0}],
        [{"step": 5}],
    ],
)
def test_a_run_that_has_hardly_begun_has_a_page(
    browser: Browser, tmp_path: Path, metrics: list[dict[str, object]]
) -> None:
    write_report([write_run(tmp_path / "run", metrics)], tmp_path / "report.html")
    page = opened(browser, tmp_path / "report.html")
    assert page.complaints == []
    assert "No probes were recorded" in page.evaluate("document.body.innerText")


def test_a_long_run_is_drawn_quickly(browser: Browser, tmp_path: Path) -> None:
    write_report([learning_run(tmp_path / "run", steps=1500)], tmp_path / "report.html")
    page = opened(browser, tmp_path / "report.html")
    assert "Each point of a curve stands for 3 steps" in page.evaluate("document.body.innerText")
    loaded_ms = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert loaded_ms < 15_000
    before_ms = page.evaluate("performance.now()")
    choose(page, "Behind the lines", "quantiles")
    assert page.evaluate("performance.now()") - before_ms < 10_000
