// One chart: lines or stacked areas as SVG, with bands, a cursor that all charts share, and a read-out.

const DASHES = [null, '6 4', '2 3', '9 3 2 3', '1 5', '12 4'];
const MARGIN = { left: 46, right: 12, top: 10, bottom: 24 };

/** The curves of a chart for the runs that are shown. */
function seriesOf(chart, view) {
  const found = [];
  page.runs.forEach((run, place) => {
    if (!view.visible[place] || (chart.stacked && found.length && found[0].run !== place)) return;
    chart.lines.forEach((line, index) => {
      const curves = line.metric.startsWith('eval/') ? run.evaluations : run.curves;
      const values = curves.values[line.metric];
      if (!values) return;
      const coloured = isMany && !chart.stacked;
      found.push({
        run: place,
        label: line.label,
        colour: coloured ? runColour(place) : runColour(index),
        dash: coloured ? DASHES[index % DASHES.length] : null,
        name: !isMany ? line.label : chart.lines.length > 1 ? `${run.name} · ${line.label}` : run.name,
        steps: curves.steps,
        raw: values,
        ...bandsOf(curves, line, values, view),
        ...smoothedBy(values, view),
      });
    });
  });
  return found;
}

function smoothedBy(values, view) {
  const known = values.reduce((count, value) => count + (value !== null), 0);
  const width = known > 30 ? view.smoothing : 1;
  return { values: smooth(values, width), faint: width > 1 ? values : null, sparse: known <= 30 };
}

/** What is drawn behind a line: quantiles, standard deviation, or the range of the steps behind a point. */
function bandsOf(curves, line, values, view) {
  const bands = [];
  const wide = (column) => smooth(column, view.smoothing);
  const quantiles = curves.quantiles[line.metric];
  if (view.bands === 'quantiles' && quantiles) {
    const column = (at) => wide(quantiles.map((row) => (row ? row[at] : null)));
    bands.push({ low: column(0), high: column(4), class: 'outer' }, { low: column(1), high: column(3), class: 'inner' });
  } else if (view.bands === 'std' && line.spread && curves.values[line.spread]) {
    const spread = curves.values[line.spread];
    const shifted = (sign) => wide(values.map((value, at) => (value === null ? null : value + sign * (spread[at] ?? 0))));
    bands.push({ low: shifted(-1), high: shifted(1), class: 'inner' });
  } else if (view.bands !== 'none' && curves.low && curves.low[line.metric]) {
    bands.push({ low: curves.low[line.metric], high: curves.high[line.metric], class: 'outer' });
  }
  return { bands };
}

function stack(series) {
  let below = series[0].raw.map(() => 0);
  return series.map((one) => {
    const top = one.values.map((value, at) => below[at] + (value ?? 0));
    const known = one.values.map((value, at) => (value === null && below[at] === 0 ? null : top[at]));
    const area = { low: below, high: known, class: 'stacked' };
    below = top;
    return { ...one, values: known, faint: null, bands: [area] };
  });
}

/** The `d` of a line through the points that are there; a gap ends it. */
function linePath(steps, values, x, y) {
  let path = '';
  let pen = 'M';
  values.forEach((value, at) => {
    if (value === null || value === undefined || !Number.isFinite(y.place(value))) {
      if (!steps.sparse) pen = 'M';
      return;
    }
    path += `${pen}${x.place(steps[at]).toFixed(1)} ${y.place(value).toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

function areaPath(steps, band, x, y) {
  const known = steps.map((_, at) => at).filter((at) => band.low[at] !== null && band.high[at] !== null);
  if (!known.length) return '';
  const floor = (value) => (Number.isFinite(y.place(value)) ? y.place(value) : y.place(y.low));
  const point = (at, value) => `${x.place(steps[at]).toFixed(1)} ${floor(value).toFixed(1)}`;
  const upper = known.map((at) => point(at, band.high[at]));
  const lower = known.reverse().map((at) => point(at, band.low[at]));
  return `M${upper.join('L')}L${lower.join('L')}Z`;
}

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

/** Draw the axes and curves into `frame`. */
function plot(frame, chart, series, { log, tall }) {
  const width = Math.max(frame.clientWidth, 200);
  const height = tall ? 360 : 190;
  const bottom = height - MARGIN.bottom;
  const values = series.flatMap((one) => [...one.values, ...(one.faint ?? []), ...one.bands.flatMap((band) => [...band.low, ...band.high])]);
  const range = axisRange(values, { unit: chart.stacked ? 'seconds' : chart.unit, log });
  if (!range) return null;
  const steps = [...new Set(series.flatMap((one) => one.steps.filter((_, at) => one.raw[at] !== null)))].sort((a, b) => a - b);
  const all = series.flatMap((one) => [one.steps[0], one.steps[one.steps.length - 1]]);
  const x = makeScale({ low: Math.min(...all), high: Math.max(...all), from: MARGIN.left, to: width - MARGIN.right, count: Math.floor(width / 90) });
  const y = makeScale({ low: range[0], high: range[1], from: bottom, to: MARGIN.top, log, count: tall ? 7 : 4 });
  const last = series.map((one) => `${one.name} ${shown([...one.raw].reverse().find((v) => v !== null), chart.unit)}`).join(', ');
  const node = svg('svg', { width, height, tabindex: 0, role: 'img', 'aria-label': `${chart.title}: ${last} at the end. Arrow keys read values.` });
  const clip = `${chart.id}-clip`;
  node.append(svg('clipPath', { id: clip }, svg('rect', { x: MARGIN.left - 4, y: 0, width: width - MARGIN.left - MARGIN.right + 8, height: bottom + 4 })));
  node.append(axes(x, y, { width, bottom, unit: chart.unit }));
  node.append(svg('g', { 'clip-path': `url(#${clip})` }, series.map((one) => curveNodes(one, x, y))));
  const cursor = svg('g', { class: 'cursor' });
  const overlay = svg('rect', { class: 'overlay', x: MARGIN.left, y: 0, width: width - MARGIN.left - MARGIN.right, height });
  node.append(cursor, overlay);
  frame.append(node);
  return { node, overlay, cursor, x, y, steps, series, bottom };
}

function curveNodes(one, x, y) {
  const bands = one.bands.map((band) => svg('path', { d: areaPath(one.steps, band, x, y), fill: one.colour, class: `band ${band.class}` }));
  const path = (values, kind) => svg('path', { d: linePath(one.sparse ? Object.assign([...one.steps], { sparse: true }) : one.steps, values, x, y), stroke: one.colour, 'stroke-dasharray': one.dash, class: kind });
  const dots = one.sparse && !one.bands.some((band) => band.class === 'stacked')
    ? one.steps.map((step, at) => (one.values[at] === null ? null : svg('circle', { cx: x.place(step), cy: y.place(one.values[at]), r: 2.5, fill: one.colour })))
    : [];
  return [...bands, one.faint && path(one.faint, 'line faint'), path(one.values, 'line'), ...dots];
}

function axes(x, y, { width, bottom, unit }) {
  const rows = y.ticks.map((tick) => svg('g', {},
    svg('line', { class: 'grid', x1: MARGIN.left, x2: width - MARGIN.right, y1: y.place(tick), y2: y.place(tick) }),
    svg('text', { class: 'tick', x: MARGIN.left - 7, y: y.place(tick) + 4, 'text-anchor': 'end', text: shown(tick, unit === 'tokens' ? 'number' : unit).replace(' ', '\u2009') })));
  const columns = x.ticks.filter(Number.isInteger).map((tick) => svg('text', { class: 'tick', x: x.place(tick), y: bottom + 17, 'text-anchor': 'middle', text: trimmed(tick, 4) }));
  return svg('g', { 'aria-hidden': 'true' }, rows, columns, svg('line', { class: 'base', x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }));
}
