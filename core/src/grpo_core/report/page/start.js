// Everything is there; fill the page.

function filterSettings() {
  const table = document.querySelector('table.settings');
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const given = rows.some((row) => !row.classList.contains('default'));
  const state = { text: '', set: given, differs: false };
  const count = el('p', { class: 'hint', role: 'status' });
  const update = () => {
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(state.text);
      row.hidden = !fits || (state.set && row.classList.contains('default')) || (state.differs && !row.classList.contains('differs'));
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} settings`;
  };
  const set = (key) => (value) => {
    state[key] = value;
    update();
  };
  const search = el('input', { type: 'search', placeholder: 'name, value or origin', oninput: () => set('text')(search.value.toLowerCase()) });
  const controls = document.getElementById('setting-controls');
  controls.append(field('Find', search), el('div', { class: 'checks' },
    checkbox('only what somebody set', set('set'), given), isMany ? checkbox('only what differs', set('differs')) : null));
  controls.hidden = false;
  controls.after(count);
  update();
}

document.documentElement.classList.add('scripted');
linkFindings(showCurves());
showProbes();
showCompletions();
filterSettings();
