// One chart in a card: its buttons, the cursor that all charts share, and the read-out.

/** A chart in a card: `draw` makes it anew, `point` moves its cursor. */
function makeChart(chart, view, onCursor) {
  let log = false;
  let drawn = null;
  const value = el('output', { class: 'value' });
  const legend = el('ul', { class: 'legend' });
  const tip = el('div', { class: 'tip', hidden: true });
  const frame = el('div', { class: 'frame' }, tip);
  const logButton = el('button', { type: 'button', text: 'log', 'aria-pressed': 'false', onclick: toggleLog });
  const wideButton = el('button', { type: 'button', text: '⤢', 'aria-label': `Enlarge ${chart.title}`, 'aria-pressed': 'false', onclick: toggleWide });
  const card = el('figure', { class: 'chart', id: chart.id },
    el('figcaption', {}, el('h4', { text: chart.title }), el('p', { text: chart.note }), value,
      el('div', { class: 'buttons' }, logButton, wideButton)),
    frame, legend);

  function toggleLog() {
    log = !log;
    logButton.setAttribute('aria-pressed', String(log));
    draw();
  }

  function toggleWide() {
    wideButton.setAttribute('aria-pressed', String(card.classList.toggle('wide')));
    draw();
  }

  function draw() {
    frame.querySelector('svg')?.remove();
    let series = seriesOf(chart, view);
    drawn = null;
    card.hidden = !series.length;
    if (!series.length) return;
    logButton.hidden = chart.stacked || chart.unit === 'share' || !series.some((one) => one.raw.some((v) => v > 0)) || series.some((one) => one.raw.some((v) => v !== null && v <= 0));
    if (chart.stacked) series = stack(series);
    drawn = plot(frame, chart, series, { ...view, log: log && !logButton.hidden, tall: card.classList.contains('wide') });
    if (drawn) watch(drawn);
    const items = legendOf(chart, series);
    legend.replaceChildren(...(items.length > 1 ? items.map(legendItem) : []));
    legend.hidden = items.length < 2;
    rest(series);
  }

  function watch({ overlay, node, x, steps }) {
    const at = (event) => {
      const wanted = x.back(event.clientX - node.getBoundingClientRect().left);
      onCursor(nearest(steps, wanted), chart.id);
    };
    overlay.addEventListener('pointermove', at);
    overlay.addEventListener('pointerdown', at);
    overlay.addEventListener('pointerleave', (event) => event.pointerType === 'mouse' && onCursor(null, chart.id));
    node.addEventListener('keydown', (event) => {
      const moved = keyTarget(event.key, steps, view.cursor);
      if (moved === undefined) return;
      event.preventDefault();
      onCursor(moved, chart.id);
      announce(moved === null ? '' : `${chart.title}, step ${moved}: ${drawn.series.map((one) => `${one.name} ${shown(valueAt(one, moved), chart.unit)}`).join(', ')}`);
    });
    node.addEventListener('blur', () => onCursor(null, chart.id));
  }

  function rest(series) {
    value.textContent = isMany || chart.stacked ? '' : shown([...series[0].raw].reverse().find((one) => one !== null), chart.unit);
  }

  function point(step, source) {
    if (!drawn) return;
    drawn.cursor.replaceChildren();
    tip.hidden = true;
    if (step === null) return rest(drawn.series);
    const { x, y, series } = drawn;
    const line = { x1: x.place(step), x2: x.place(step), y1: MARGIN.top, y2: drawn.bottom, class: 'rule' };
    drawn.cursor.append(svg('line', line));
    for (const one of series) {
      const top = chart.stacked ? one.values[one.steps.indexOf(step)] : valueAt(one, step, one.values);
      if (top === null || top === undefined || !Number.isFinite(y.place(top))) continue;
      drawn.cursor.append(svg('circle', { cx: x.place(step), cy: y.place(top), r: 3.5, fill: one.colour }));
    }
    if (value.textContent) value.textContent = shown(valueAt(series[0], step), chart.unit);
    if (source === chart.id) showTip(step);
  }

  function showTip(step) {
    const rows = drawn.series.map((one) => el('li', {}, swatch(one), el('span', { text: one.name }), el('b', { text: shown(valueAt(one, step), chart.unit) }),
      ...extras(one, step)));
    tip.replaceChildren(el('strong', { text: step === 0 ? 'before training' : `step ${step}` }), el('ul', {}, rows));
    tip.hidden = false;
    const left = drawn.x.place(step);
    tip.classList.toggle('left', left > frame.clientWidth / 2);
    tip.style.left = `${left}px`;
  }

  return { card, draw, point, chart };
}

/** What stands beside a value in the read-out: quantiles or deviation, as they are drawn. */
function extras(one, step) {
  const at = one.steps.indexOf(step);
  const bands = one.bands.filter((band) => band.class !== 'stacked' && at >= 0 && band.low[at] !== null && band.low[at] !== undefined);
  return bands.map((band) => el('small', { text: `${shown(band.low[at])} … ${shown(band.high[at])}` }));
}

/** One item a line; where colours tell runs apart, in no colour and by its dashes. */
function legendOf(chart, series) {
  if (!isMany || chart.stacked) return series;
  const seen = new Map(series.map((one) => [one.label, { name: one.label, colour: 'currentColor', dash: one.dash }]));
  return [...seen.values()];
}

function legendItem(one) {
  return el('li', {}, swatch(one), el('span', { text: one.name }));
}

function swatch(one) {
  const line = svg('line', { x1: 0, x2: 18, y1: 5, y2: 5, stroke: one.colour, 'stroke-width': 3, 'stroke-dasharray': one.dash });
  return svg('svg', { width: 18, height: 10, 'aria-hidden': 'true' }, line);
}

function valueAt(one, step, values = one.raw) {
  const at = one.steps.indexOf(step);
  return at < 0 ? null : values[at];
}

function nearest(steps, wanted) {
  let low = 0;
  let high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] < wanted) low = middle;
    else high = middle;
  }
  return wanted - steps[low] < steps[high] - wanted ? steps[low] : steps[high];
}

function keyTarget(key, steps, current) {
  const at = current === null ? steps.length - 1 : steps.indexOf(nearest(steps, current));
  const jump = Math.max(Math.round(steps.length / 10), 1);
  const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1, PageUp: at - jump, PageDown: at + jump };
  if (key === 'Escape') return null;
  return key in places ? steps[Math.min(Math.max(places[key], 0), steps.length - 1)] : undefined;
}
