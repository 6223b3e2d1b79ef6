// What somebody has typed is not lost when the page goes: a session that ended, an error, a click on the wrong row. Kept
// in this tab only, and forgotten once it was sent.
const PREFIX = "board.draft:";

export function keepDrafts() {
  const review = document.querySelector("[data-review]")?.dataset.review;
  const sent = document.querySelector("[data-toast]")?.dataset.toast;
  if (sent) forget(sent);
  if (!review) return;
  for (const link of document.querySelectorAll("[data-carry]")) link.addEventListener("click", () => carry(review, link));
  for (const field of document.querySelectorAll("[data-review] :is(textarea, input:not([type]), select)")) {
    const name = nameOf(review, field);
    if (!name || field.readOnly) continue;
    const text = read(name);
    if (text && !field.value) field.value = text;
    field.addEventListener("input", () => write(name, field.value));
  }
}

// The task waits for a new review: what was typed for the old one goes along, to be sent there or not.
function carry(old, link) {
  try {
    for (const name of Object.keys(sessionStorage).filter((it) => it.startsWith(`${PREFIX}${old}:`))) {
      sessionStorage.setItem(name.replace(`:${old}:`, `:${link.dataset.carry}:`), sessionStorage.getItem(name));
    }
  } catch { /* nothing is kept there */ }
}

function nameOf(review, field) {
  const verdict = field.form?.elements.namedItem("verdict")?.value;
  return field.name && verdict ? `${PREFIX}${review}:${verdict}:${field.name}` : null;
}

function forget(review) {
  try {
    const gone = Object.keys(sessionStorage).filter((name) => name.startsWith(`${PREFIX}${review}:`));
    for (const name of gone) sessionStorage.removeItem(name);
  } catch { /* nothing is kept there */ }
}

function read(name) {
  try { return sessionStorage.getItem(name); } catch { return null; }
}

function write(name, text) {
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch { /* full, or forbidden: the field itself still has it */ }
}
