// The data of the page, and elements made of text: whatever a model wrote goes in as a text node, never as markup.

const page = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';

/** An element with properties (`class`, `text`, `on…` listeners, attributes) and children. */
function el(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(node, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'text') node.textContent = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** A labelled control. */
function field(label, control) {
  return el('label', { class: 'field' }, el('span', { text: label }), control);
}

/** The two ends of a range; `change` is called with `least` or `most`'s new value, null where it is empty. */
function range(labels, placeholders, change) {
  const ends = labels.map((label, at) => field(label, numberInput(placeholders[at], (value) => change(at, value))));
  return el('div', { class: 'pair' }, ends);
}

function select(options, value, change) {
  const node = el('select', { onchange: () => change(node.value) });
  for (const [key, label] of options) node.append(el('option', { value: key, text: label, selected: key === value }));
  return node;
}

function numberInput(placeholder, change) {
  const node = el('input', { type: 'number', step: 'any', placeholder, oninput: () => change(numberOf(node.value)) });
  return node;
}

function numberOf(text) {
  return text.trim() === '' ? null : Number(text);
}

function checkbox(label, change, checked = false) {
  const box = el('input', { type: 'checkbox', checked, onchange: () => change(box.checked) });
  return el('label', { class: 'check' }, box, el('span', { text: label }));
}

function announce(text) {
  document.getElementById('announcer').textContent = text;
}

const isMany = page.runs.length > 1;
const runColour = (place) => `var(--series-${place % 8})`;
