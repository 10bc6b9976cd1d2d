// A picture of curves as SVG: axes, bands, lines, and a layer for the cursor.

const MARGIN = { left: 46, right: 12, top: 10, bottom: 24 };

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
  const path = (values, kind) => svg('path', { d: linePath(one, values, x, y), stroke: one.colour, 'stroke-dasharray': one.dash, class: kind });
  const dots = one.sparse && !one.bands.some((band) => band.class === 'stacked')
    ? one.steps.map((step, at) => (one.values[at] === null ? null : svg('circle', { cx: x.place(step), cy: y.place(one.values[at]), r: 2.5, fill: one.colour })))
    : [];
  return [...bands, one.faint && path(one.faint, 'line faint'), path(one.values, 'line'), ...dots];
}

function axes(x, y, { width, bottom, unit }) {
  const rows = y.ticks.map((tick) => svg('g', {},
    svg('line', { class: 'grid', x1: MARGIN.left, x2: width - MARGIN.right, y1: y.place(tick), y2: y.place(tick) }),
    svg('text', { class: 'tick', x: MARGIN.left - 7, y: y.place(tick) + 4, 'text-anchor': 'end', text: tickText(tick, y.ticks, unit) })));
  const columns = x.ticks.filter(Number.isInteger).map((tick) => svg('text', { class: 'tick', x: x.place(tick), y: bottom + 17, 'text-anchor': 'middle', text: trimmed(tick, 4) }));
  return svg('g', { 'aria-hidden': 'true' }, rows, columns, svg('line', { class: 'base', x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }));
}

/** The `d` of a line through the points that are there; a gap ends it, unless the curve has few points anyway. */
function linePath(one, values, x, y) {
  let path = '';
  let pen = 'M';
  values.forEach((value, at) => {
    if (value === null || value === undefined || !Number.isFinite(y.place(value))) {
      if (!one.sparse) pen = 'M';
      return;
    }
    path += `${pen}${x.place(one.steps[at]).toFixed(1)} ${y.place(value).toFixed(1)}`;
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
