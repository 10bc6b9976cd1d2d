// Numbers: how they are written, and where they lie on an axis.

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A value for a reader: three or four digits, by unit. */
function shown(value, unit = 'number') {
  if (value === null || value === undefined) return '–';
  if (unit === 'share') return `${trimmed(value * 100, 3)} %`;
  if (unit === 'seconds') return `${trimmed(value, 3)} s`;
  return trimmed(value, 4);
}

function trimmed(value, digits) {
  const size = Math.abs(value);
  if (size >= 10000) return COMPACT.format(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1).replace('.0e', 'e');
  if (size >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(digits)));
}

/** A tick's text: with as many decimals as tell it from its neighbours. */
function tickText(tick, ticks, unit) {
  const text = shown(tick, unit === 'tokens' ? 'number' : unit).replace(' ', '\u2009');
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1;
  const fine = unit === 'number' && tick !== 0 && step < Math.abs(tick) / 1000;
  return fine ? tick.toFixed(Math.min(Math.ceil(-Math.log10(step) + 0.3), 4)) : text;
}

/** Round values that cover [low, high], about `count` of them. */
function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) ticks.push(at * step);
  return ticks.map((tick) => Number(tick.toPrecision(12)));
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of high / low > 1000 ? [1] : [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

/** From values to a place between `from` and `to`, with ticks. */
function makeScale({ low, high, from, to, log = false, count = 4 }) {
  const warp = log ? Math.log10 : (value) => value;
  const [first, last] = [warp(low), warp(high)];
  const factor = (to - from) / (last - first || 1);
  const place = (value) => from + (warp(value) - first) * factor;
  const ticks = log ? logTicks(low, high) : linearTicks(low, high, count);
  return { place, ticks, low, high, back: (at) => first + (at - from) / factor };
}

/** The range of an axis: a little air, and from 0 where that is near or the unit begins there. */
function axisRange(values, { unit, log }) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return null;
  if (log) return low === high ? [low / 2, high * 2] : [low, high];
  if (low >= 0 && (unit !== 'number' || low < high * 0.4)) low = 0;
  if (low === high) return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const least = Math.abs(high) * 0.004; // a finer axis would need labels longer than they have room
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  const air = (high - low) * 0.05;
  return [low === 0 ? 0 : low - air, unit === 'share' ? Math.min(high + air, Math.max(1, high)) : high + air];
}

/** A centred moving mean over `width` points; gaps stay gaps. */
function smooth(values, width) {
  const half = (width - 1) / 2;
  if (half < 1) return values;
  return values.map((value, at) => {
    if (value === null) return null;
    let sum = 0;
    let count = 0;
    for (let other = Math.max(0, at - half); other <= Math.min(values.length - 1, at + half); other += 1) {
      if (values[other] === null || values[other] === undefined) continue;
      sum += values[other];
      count += 1;
    }
    return sum / count;
  });
}
