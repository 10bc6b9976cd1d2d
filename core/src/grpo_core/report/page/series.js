// The curves of a chart: which values, in which colour, with what behind them.

const DASHES = [null, '6 4', '2 3', '9 3 2 3', '1 5', '12 4'];

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
