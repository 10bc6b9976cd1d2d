// Images of prompts: small beside the text, larger on request. A button opens, Escape or a click closes.

/** The images of a prompt in the order of their `<image>`; null: it has none. */
function promptImages(sample) {
  if (!sample.images?.length) return null;
  return el('ul', { class: 'images', 'aria-label': 'Images of the prompt' }, sample.images.map((name, at) => el('li', {}, promptImage(sample, name, at))));
}

function promptImage(sample, name, at) {
  const text = `Image ${at + 1} of ${sample.images.length} of ${sample.id}`;
  const data = Object.hasOwn(page.images, name) ? `data:image/jpeg;base64,${page.images[name]}` : null;
  if (data === null) return el('span', { class: 'absent', title: name || 'It could not be read when it was recorded.', text: `${text}: not in this page` });
  return el('button', { type: 'button', title: 'Enlarge', 'aria-haspopup': 'dialog', onclick: () => enlarge(data, text) }, el('img', { src: data, alt: text, decoding: 'async' }));
}

function enlarge(data, text) {
  const dialog = el('dialog', { class: 'enlarged', 'aria-label': text, onclick: () => dialog.close(), onclose: () => dialog.remove() },
    el('figure', {}, el('img', { src: data, alt: text }), el('figcaption', { text })),
    el('button', { type: 'button', class: 'more', text: 'Close' }));
  document.body.append(dialog);
  dialog.showModal();
}
