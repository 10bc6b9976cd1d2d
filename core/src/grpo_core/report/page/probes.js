// Probe prompts: an overview of all scores, and the answers at chosen steps side by side.

function showProbes() {
  const root = document.getElementById('probe-view');
  const steps = [];
  page.runs.forEach((run, at) => {
    for (const step of new Set(run.probes.map((answer) => answer.step))) steps.push({ run: at, step });
  });
  if (!steps.length) {
    root.append(el('p', { class: 'hint', text: 'No probes were recorded; run.probe_prompts sets how many prompts are asked.' }));
    return;
  }
  const state = { drawn: 'greedy', reward: '', only: 'all', least: null, most: null, columns: firstColumns(steps) };
  const prompts = probePrompts();
  const overview = el('div', { class: 'scrolling', tabindex: 0, role: 'region', 'aria-label': 'Scores of all probes' });
  const answers = el('div', { class: 'probe-answers' });
  const update = () => {
    const heat = heatScale(prompts, state);
    overview.replaceChildren(...page.runs.map((run, at) => heatmap(at, steps, prompts, state, { toggle, heat })).filter(Boolean));
    answers.replaceChildren(...probeRows(prompts, state, steps, update));
  };
  function toggle(column) {
    const at = state.columns.findIndex((one) => same(one, column));
    if (at >= 0) state.columns.splice(at, 1);
    else state.columns.push(column);
    state.columns.sort(inOrder);
    update();
  }
  root.append(probeControls(state, update), overview,
    el('p', { class: 'hint', text: 'A column is a step: choose it to set its answers side by side below.' }), answers);
  for (const run of page.runs) if (run.said.probes) root.append(el('p', { class: 'hint', text: run.said.probes }));
  update();
}

const inOrder = (one, other) => one.run - other.run || one.step - other.step;
const same = (one, other) => one.run === other.run && one.step === other.step;

/** Begin, a tenth, a quarter, half and end: of 2,000 steps 0, 200, 500, 1000 and 2000. */
function firstColumns(steps) {
  const found = [];
  page.runs.forEach((_, run) => {
    const own = steps.filter((one) => one.run === run).map((one) => one.step);
    if (!own.length) return;
    const last = own[own.length - 1];
    for (const share of isMany ? [0, 1] : [0, 0.1, 0.25, 0.5, 1]) {
      const column = { run, step: nearest(own, share * last) };
      if (!found.some((one) => same(one, column))) found.push(column);
    }
  });
  return found.sort(inOrder);
}

/** Prompts of all runs, the same one once, with their answers by run, step and way of drawing. */
function probePrompts() {
  const found = new Map();
  page.runs.forEach((run, at) => {
    for (const answer of run.probes) {
      const sample = run.samples[answer.sample];
      const key = `${sample.id} ${sample.prompt} ${sample.images ?? ''}`;
      if (!found.has(key)) found.set(key, { sample, answers: new Map() });
      found.get(key).answers.set(`${at} ${answer.step} ${answer.drawn}`, answer);
    }
  });
  return [...found.values()];
}

function answerAt(prompt, column, state) {
  return prompt.answers.get(`${column.run} ${column.step} ${state.drawn}`);
}

function probeControls(state, update) {
  const set = (key) => (value) => {
    state[key] = value;
    update();
  };
  const only = [['all', 'all prompts'], ['rose', 'score rose'], ['fell', 'score fell'], ['same', 'score unchanged'], ['failed', 'a score failed'], ['cut', 'an answer was cut off']];
  return el('div', { class: 'controls' },
    field('Answers', select([['greedy', 'greedy'], ['sampled', 'sampled']], state.drawn, set('drawn'))),
    field('Score', select(rewardOptions(page.runs), '', set('reward'))),
    field('Show', select(only, 'all', set('only'))),
    range(['at least', 'at most'], ['any', 'any'], (end, value) => set(['least', 'most'][end])(value)));
}

/** From a score to its warmth, on one scale for all runs. */
function heatScale(prompts, state) {
  const scores = prompts.flatMap((prompt) => [...prompt.answers.values()].map((answer) => scoreOf(answer, state.reward))).filter((score) => score !== null);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  return (score) => (low === high ? '50%' : `${(100 * (score - low)) / (high - low)}%`);
}

function heatmap(run, steps, prompts, state, { toggle, heat }) {
  const own = steps.filter((one) => one.run === run);
  if (!own.length) return null;
  const shownPrompts = prompts.filter((prompt) => own.some((column) => answerAt(prompt, column, state)));
  const head = el('tr', {}, el('th', { scope: 'col', class: 'corner', text: isMany ? page.runs[run].name : 'step' }), own.map((column) => {
    const chosen = state.columns.some((one) => same(one, column));
    return el('th', { scope: 'col', class: chosen ? 'chosen' : null }, el('button', { type: 'button', text: column.step, 'aria-pressed': String(chosen), 'aria-label': `Answers of step ${column.step}`, onclick: () => toggle(column) }));
  }));
  const rows = shownPrompts.map((prompt, at) => el('tr', {}, el('th', { scope: 'row', text: `prompt ${at + 1}`, title: promptTitle(prompt.sample) }), own.map((column) => cell(answerAt(prompt, column, state), state, heat, () => toggle(column)))));
  return el('table', { class: 'heatmap' }, el('thead', {}, head), el('tbody', {}, rows));
}

function cell(answer, state, heat, onclick) {
  if (!answer) return el('td', {});
  const score = scoreOf(answer, state.reward);
  const failed = state.reward ? answer.failures?.[state.reward] : Object.keys(answer.failures ?? {}).length > 0;
  const text = failed ? '✕' : score === null ? '–' : shown(score);
  const node = el('td', { text, class: failed ? 'failed' : null, onclick, title: `step ${answer.step}: ${text}` });
  if (score !== null) {
    node.style.setProperty('--heat', heat(score));
    node.classList.add('heat');
  }
  return node;
}

function probeRows(prompts, state, steps, update) {
  const chosen = prompts.map((prompt, at) => ({ prompt, number: at + 1 })).filter(({ prompt }) => passes(prompt, state));
  if (!state.columns.length) return [el('p', { class: 'hint', text: 'Choose a step above.' })];
  const header = el('div', { class: 'probe-row header' }, state.columns.map((column) => columnHead(column, state, steps, update)));
  const rows = chosen.map(({ prompt, number }) => el('article', { class: 'probe' },
    el('h4', {}, el('span', { class: 'number', text: `Prompt ${number}` }), el('span', { text: promptTitle(prompt.sample) })),
    promptImages(prompt.sample), promptDetails(prompt.sample),
    el('div', { class: 'probe-row' }, state.columns.map((column) => probeAnswer(answerAt(prompt, column, state), column)))));
  const count = el('p', { class: 'hint', role: 'status', text: `${chosen.length} of ${prompts.length} prompts` });
  const track = el('div', { class: 'probe-track', tabindex: 0, role: 'region', 'aria-label': 'Answers side by side' }, header, rows);
  track.style.setProperty('--columns', state.columns.length);
  return [count, track];
}

/** A column's step: a slider to run through them, and the step itself. */
function columnHead(column, state, steps, update) {
  const own = steps.filter((one) => one.run === column.run).map((one) => one.step);
  const change = (step) => {
    if (state.columns.some((one) => same(one, { run: column.run, step }))) return;
    const focus = document.activeElement?.dataset.role;
    column.step = step;
    update();
    document.querySelectorAll(`.probe-row.header [data-role="${focus}"]`)[state.columns.indexOf(column)]?.focus();
  };
  const slider = el('input', { type: 'range', min: 0, max: own.length - 1, value: own.indexOf(column.step), 'data-role': 'slider', 'aria-label': 'Step', 'aria-valuetext': `step ${column.step}`, oninput: () => change(own[Number(slider.value)]) });
  const choice = select(own.map((step) => [String(step), step === 0 ? 'before training' : `step ${step}`]), String(column.step), (step) => change(Number(step)));
  choice.dataset.role = 'choice';
  choice.setAttribute('aria-label', 'Step of this column');
  const remove = el('button', { type: 'button', class: 'quiet', text: '×', 'aria-label': `Remove step ${column.step}`, onclick: () => {
    state.columns.splice(state.columns.indexOf(column), 1);
    update();
  } });
  return el('div', { class: 'column-head' },
    isMany ? el('p', { class: 'run-name' }, swatch({ colour: runColour(column.run), dash: null }), el('span', { text: page.runs[column.run].name })) : null,
    el('div', { class: 'choice' }, choice, remove), own.length > 1 ? slider : null);
}

function probeAnswer(answer, column) {
  if (!answer) return el('div', { class: 'cell' }, el('p', { class: 'hint', text: `Not asked at step ${column.step}.` }));
  return el('div', { class: 'cell' }, scoreMarks(answer), answerText(answer.text), el('p', { class: 'facts', text: facts(answer) }), behind(answer));
}

/** Whether a prompt is shown: by how its score went over the chosen columns, and by the range of a score in any. */
function passes(prompt, state) {
  const answers = state.columns.map((column) => answerAt(prompt, column, state)).filter(Boolean);
  const scores = answers.map((answer) => scoreOf(answer, state.reward)).filter((score) => score !== null);
  const inside = (score) => (state.least === null || score >= state.least) && (state.most === null || score <= state.most);
  if ((state.least !== null || state.most !== null) && !scores.some(inside)) return false;
  const change = scores.length > 1 ? scores[scores.length - 1] - scores[0] : 0;
  const rules = {
    all: () => true,
    rose: () => change > 0,
    fell: () => change < 0,
    same: () => change === 0,
    failed: () => answers.some((answer) => answer.failures),
    cut: () => answers.some((answer) => answer.cut),
  };
  return rules[state.only]();
}
