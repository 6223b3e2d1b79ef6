// Which key does what. Each act has a key of its own, which a reader may change in the help; kept in this browser.
const STORED = "board.keys"; // "off" where single keys are switched off
const CHANGED = "board.keymap"; // the acts whose key was changed, as JSON

export const USUAL = {
  next: "j", previous: "k", extend_next: "J", extend_previous: "K", open: "o", back: "u", before: "[", after: "]",
  approve: "a", edit: "e", revise: "r", reject: "d", snooze: "s", claim: "c", comment: "m", select: "x", compare: "v",
  undo: "z", search: "/", go: "g", help: "?",
};

export function on() {
  return read(STORED) !== "off";
}

export function switchKeys(wanted) {
  write(STORED, wanted ? "on" : "off");
}

// Act by act the key in use.
export function keys() {
  try {
    const changed = JSON.parse(read(CHANGED) ?? "{}");
    const known = Object.entries(changed).filter(([act, key]) => act in USUAL && typeof key === "string");
    return { ...USUAL, ...Object.fromEntries(known) };
  } catch {
    return { ...USUAL };
  }
}

// Gives an act another key; the act that had it gets the old one in exchange, so that no two share one.
export function change(act, key) {
  const now = keys();
  const other = Object.keys(now).find((name) => now[name] === key);
  if (other) now[other] = now[act];
  now[act] = key;
  write(CHANGED, JSON.stringify(Object.fromEntries(Object.entries(now).filter(([name]) => now[name] !== USUAL[name]))));
}

export function reset() {
  write(CHANGED, "{}");
}

// Writes the keys in use wherever a page names one.
export function showKeys(root = document) {
  const now = keys();
  for (const shown of root.querySelectorAll("[data-chord]")) shown.textContent = now[shown.dataset.chord];
  document.documentElement.toggleAttribute("data-no-keys", !on());
}

const kept = new Map(); // where the browser keeps nothing, for this page only

function read(name) {
  try { return localStorage.getItem(name); } catch { return kept.get(name) ?? null; }
}

function write(name, value) {
  try { localStorage.setItem(name, value); } catch { kept.set(name, value); }
}
