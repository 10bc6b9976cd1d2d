// What answers have in common wherever they are shown: score marks, marked-up text, what lies behind them.

const TAGS = /(<\/?[a-zA-Z_]{2,20}>)/;

/** The text of an answer; its tags are set apart, and everything is text. */
function answerText(text) {
  if (text === null) return el('p', { class: 'hint', text: 'The text is not in this page.' });
  if (text === '') return el('p', { class: 'hint', text: 'Empty.' });
  const parts = text.split(TAGS).map((part) => (TAGS.test(part) ? el('span', { class: 'tag', text: part }) : part));
  return el('pre', { class: 'answer' }, parts);
}

/** The total and each reward of an answer. */
function scoreMarks(answer) {
  const marks = [mark('total', answer.total, answer.total === null ? 'no total' : shown(answer.total))];
  for (const [name, score] of Object.entries(answer.scores)) {
    const failed = answer.failures?.[name];
    marks.push(mark(name, score, failed ? 'failed' : score === null ? 'n/a' : shown(score), failed));
  }
  return el('ul', { class: 'marks' }, marks);
}

function mark(name, score, text, failed) {
  const kind = failed ? 'failed' : score === null ? 'none' : score > 0 ? 'paid' : 'unpaid';
  return el('li', { class: kind, title: failed }, el('span', { text: name }), el('b', { text }));
}

function facts(answer) {
  const parts = [`${answer.tokens} tokens`];
  if (answer.cut) parts.push('cut off');
  if (answer.advantage !== undefined) parts.push(`advantage ${answer.advantage > 0 ? '+' : ''}${shown(answer.advantage)}`);
  return parts.join(' · ');
}

/** Why rewards failed, and what they recorded. */
function behind(answer) {
  const rows = [
    ...Object.entries(answer.failures ?? {}).map(([name, reason]) => [`${name} failed`, reason]),
    ...Object.entries(answer.records ?? {}),
  ];
  return rows.length ? definitions(rows) : null;
}

function promptDetails(sample, open = false) {
  const rows = Object.entries(sample.columns);
  return el('details', { open }, el('summary', { text: 'Prompt and row' }), el('pre', { class: 'prompt', text: sample.prompt }), rows.length ? definitions(rows) : null);
}

function definitions(rows) {
  return el('dl', { class: 'pairs' }, rows.map(([name, value]) => el('div', {}, el('dt', { text: name }), el('dd', { text: value }))));
}

/** The score a filter looks at: the total, or one reward. */
function scoreOf(answer, reward) {
  return reward === '' ? answer.total : answer.scores[reward] ?? null;
}

function rewardOptions(runs) {
  return [['', 'total'], ...[...new Set(runs.flatMap((run) => run.rewards))].map((name) => [name, name])];
}

const ROLES = /<[^<>\s]*(?:start|header|im_)[^<>\s]*>\s*(?:system|user|assistant|model|tool)?/g;
const MARKS = /<\|[^<>\s]*\|>|<(?:end|start|\/?s|bos|eos)[^<>\s]*>/g;

/** The end of a rendered prompt, without the marks of its chat template: what tells prompts apart. */
function promptTitle(sample) {
  const text = sample.prompt.replace(ROLES, ' ').replace(MARKS, ' ').replace(/\s+/g, ' ').trim();
  return text.length > 180 ? `… ${text.slice(-180)}` : text;
}
