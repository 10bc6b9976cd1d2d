// All charts by group, with the controls they share: which runs, how smooth, what stands behind the lines.

const WIDTHS = [1, 3, 5, 9, 15, 25, 41, 61];

function showCurves() {
  const longest = Math.max(...page.runs.map((run) => run.curves.steps.length));
  const view = {
    visible: page.runs.map(() => true),
    smoothing: longest > 300 ? 9 : longest > 60 ? 5 : 1,
    bands: isMany ? 'none' : 'std',
    cursor: null,
  };
  const charts = page.charts.map((chart) => makeChart(chart, view, moveCursor));
  let waiting = false;

  function moveCursor(step, source) {
    view.cursor = step;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      for (const chart of charts) chart.point(view.cursor, source);
    });
  }

  function redraw() {
    for (const chart of charts) chart.draw();
  }

  const controls = document.getElementById('chart-controls');
  controls.append(...(isMany ? [runButtons(view, redraw)] : []), smoothing(view, redraw), bandChoice(view, redraw));
  controls.hidden = false;
  place(charts);
  redraw();
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (width === window.innerWidth) return;
    width = window.innerWidth;
    redraw();
  });
  return charts;
}

/** Put each chart under its group's heading; those of the evaluation stand in its own section. */
function place(charts) {
  const groups = new Map();
  for (const chart of charts) {
    if (!groups.has(chart.chart.group)) groups.set(chart.chart.group, []);
    groups.get(chart.chart.group).push(chart.card);
  }
  for (const [group, cards] of groups) {
    const grid = el('div', { class: 'charts' }, cards);
    const parts = [grid, constants(page.constant[group])].filter(Boolean);
    if (group === 'Evaluation') document.getElementById('evaluation-charts').append(...parts);
    else document.getElementById('chart-groups').append(el('h3', { text: group }), ...parts);
  }
  for (const group of Object.keys(page.constant).filter((name) => !groups.has(name))) {
    document.getElementById('chart-groups').append(el('h3', { text: group }), constants(page.constant[group]));
  }
}

/** What is not drawn, since it never changes. */
function constants(values) {
  if (!values) return null;
  const said = Object.entries(values).map(([name, value]) => `${name} = ${shown(value)}`);
  return el('p', { class: 'hint constant', text: `The same throughout: ${said.join(', ')}` });
}

function runButtons(view, redraw) {
  const buttons = page.runs.map((run, at) => {
    const button = el('button', { type: 'button', class: 'run', 'aria-pressed': 'true', onclick: () => {
      view.visible[at] = !view.visible[at];
      button.setAttribute('aria-pressed', String(view.visible[at]));
      redraw();
    } }, swatch({ colour: runColour(at), dash: null }), el('span', { text: run.name }));
    return button;
  });
  return el('div', { class: 'runs', role: 'group', 'aria-label': 'Runs shown' }, buttons);
}

function smoothing(view, redraw) {
  const label = el('b', { text: said() });
  const slider = el('input', { type: 'range', min: 0, max: WIDTHS.length - 1, value: WIDTHS.indexOf(view.smoothing), oninput: () => {
    view.smoothing = WIDTHS[Number(slider.value)];
    label.textContent = said();
    redraw();
  } });
  function said() {
    return view.smoothing === 1 ? 'off' : `${view.smoothing} points`;
  }
  return el('label', { class: 'field' }, el('span', {}, 'Smoothing ', label), slider);
}

function bandChoice(view, redraw) {
  const options = [['std', '± standard deviation'], ['quantiles', 'quantiles 10–90 %, 25–75 %'], ['none', 'nothing']];
  return field('Behind the lines', select(options, view.bands, (value) => {
    view.bands = value;
    redraw();
  }));
}

/** Each finding leads to the curves it was read from. */
function linkFindings(charts) {
  for (const card of document.querySelectorAll('.finding')) {
    const metrics = card.dataset.metrics.split(' ');
    const chart = charts.find((one) => !one.card.hidden && one.chart.lines.some((line) => line.metric === metrics[0]));
    if (!chart) continue;
    card.append(el('button', { type: 'button', class: 'link', text: `See ${chart.chart.title}`, onclick: () => {
      chart.card.scrollIntoView({ block: 'center' });
      chart.card.classList.add('flash');
      chart.card.querySelector('svg')?.focus({ preventScroll: true });
      setTimeout(() => chart.card.classList.remove('flash'), 1600);
    } }));
  }
}
