// The recorded completions that are in the page, with filters; a few at a time.

const AT_ONCE = window.innerWidth < 640 ? 6 : 12;

function showCompletions() {
  const root = document.getElementById('completion-view');
  const all = page.runs.flatMap((run, at) => run.completions.map((answer) => ({ ...answer, run: at })));
  for (const run of page.runs) {
    if (run.said.completions) root.append(el('p', { class: 'lead', text: isMany ? `${run.name}: ${run.said.completions}` : run.said.completions }));
  }
  for (const run of page.runs) if (run.said.images) root.append(el('p', { class: 'hint', text: isMany ? `${run.name}: ${run.said.images}` : run.said.images }));
  if (!all.length) {
    root.append(el('p', { class: 'hint', text: 'No completions were recorded.' }));
    return;
  }
  const state = { run: '', from: null, to: null, reward: '', least: null, most: null, failed: false, cut: false, text: '', order: 'step', group: null, limit: AT_ONCE };
  const count = el('p', { class: 'hint', role: 'status' });
  const list = el('div', { class: 'completions' });
  const more = el('button', { type: 'button', class: 'more', onclick: () => {
    state.limit += AT_ONCE;
    update();
  } });
  const controls = completionControls(all, state, () => {
    state.limit = AT_ONCE;
    update();
  });
  function update() {
    const found = sorted(all.filter((answer) => matches(answer, state)), state);
    count.replaceChildren(`${found.length.toLocaleString('en')} of ${all.length.toLocaleString('en')} completions`, ...groupNote());
    list.replaceChildren(...found.slice(0, state.limit).map((answer) => completionCard(answer, showGroup)));
    more.hidden = found.length <= state.limit;
    more.textContent = `Show ${Math.min(AT_ONCE, found.length - state.limit)} more`;
  }
  function groupNote() {
    if (!state.group) return [];
    const clear = el('button', { type: 'button', class: 'link', text: 'show all again', onclick: () => showGroup(null) });
    return [` of one group, sample ${state.group.id}, step ${state.group.step} – `, clear];
  }
  function showGroup(group) {
    state.group = group;
    state.limit = group ? Infinity : AT_ONCE;
    update();
    root.scrollIntoView();
  }
  root.append(controls, count, list, more);
  update();
}

function completionControls(all, state, update) {
  const set = (key) => (value) => {
    state[key] = value;
    update();
  };
  const search = el('input', { type: 'search', placeholder: 'in text or prompt', oninput: () => set('text')(search.value.toLowerCase()) });
  const [first, last] = all.reduce(([low, high], { step }) => [Math.min(low, step), Math.max(high, step)], [Infinity, -Infinity]);
  const orders = [['step', 'by step'], ['newest', 'last step first'], ['best', 'highest score first'], ['worst', 'lowest score first'], ['longest', 'longest first'], ['shortest', 'shortest first']];
  return el('div', { class: 'controls' },
    isMany ? field('Run', select([['', 'all'], ...page.runs.map((run, at) => [String(at), run.name])], '', set('run'))) : null,
    range(['Step from', 'to'], [first, last].map(String), (end, value) => set(['from', 'to'][end])(value)),
    field('Score', select(rewardOptions(page.runs), '', set('reward'))),
    range(['at least', 'at most'], ['any', 'any'], (end, value) => set(['least', 'most'][end])(value)),
    field('Text', search),
    field('Order', select(orders, 'step', set('order'))),
    el('div', { class: 'checks' }, checkbox('a score failed', set('failed')), checkbox('cut off', set('cut'))));
}

function matches(answer, state) {
  const sample = page.runs[answer.run].samples[answer.sample];
  if (state.group && (answer.run !== state.group.run || answer.step !== state.group.step || answer.sample !== state.group.sample)) return false;
  if (state.run !== '' && answer.run !== Number(state.run)) return false;
  if ((state.from !== null && answer.step < state.from) || (state.to !== null && answer.step > state.to)) return false;
  if ((state.failed && !answer.failures) || (state.cut && !answer.cut)) return false;
  const score = scoreOf(answer, state.reward);
  if (state.least !== null && !(score !== null && score >= state.least)) return false;
  if (state.most !== null && !(score !== null && score <= state.most)) return false;
  return !state.text || answer.text.toLowerCase().includes(state.text) || sample.prompt.toLowerCase().includes(state.text);
}

function sorted(answers, state) {
  const score = (answer, missing) => scoreOf(answer, state.reward) ?? missing;
  const orders = {
    step: () => 0,
    newest: (a, b) => b.step - a.step,
    best: (a, b) => score(b, -Infinity) - score(a, -Infinity) || 0,
    worst: (a, b) => score(a, Infinity) - score(b, Infinity) || 0,
    longest: (a, b) => b.tokens - a.tokens,
    shortest: (a, b) => a.tokens - b.tokens,
  };
  return [...answers].sort(orders[state.order]);
}

function completionCard(answer, showGroup) {
  const run = page.runs[answer.run];
  const sample = run.samples[answer.sample];
  const group = { run: answer.run, step: answer.step, sample: answer.sample, id: sample.id };
  return el('article', { class: 'completion' },
    el('header', {},
      el('p', {}, isMany ? swatch({ colour: runColour(answer.run), dash: null }) : null, el('strong', { text: `step ${answer.step}` }), ` ${isMany ? `${run.name} · ` : ''}${sample.id} · answer ${answer.member + 1}`),
      el('p', { class: 'facts', text: facts(answer) })),
    el('p', { class: 'question', text: promptTitle(sample), title: promptTitle(sample) }),
    promptImages(sample), scoreMarks(answer), answerText(answer.text), behind(answer), promptDetails(sample),
    el('button', { type: 'button', class: 'link', text: 'All answers to this prompt', onclick: () => showGroup(group) }));
}
