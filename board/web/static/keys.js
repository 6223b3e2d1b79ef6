// Single keys, as the help lists them. Off while somebody types (also with an input method), holds a modifier or has a
// dialog open, and for good where the box in the help is cleared.
import { acts, escape } from "./acts.js";
import { keys, on, showKeys } from "./keymap.js";
import { openHelp, prepareHelp } from "./help.js";

const WAIT = 1_500; // milliseconds for the second key of a pair

let leading = 0; // until when the next key is the second of a pair

export function listenForKeys() {
  document.addEventListener("keydown", onKey);
  prepareHelp();
  showKeys();
}

function onKey(event) {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
  const field = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.closest?.("form");
    if (form && field) {
      event.preventDefault();
      form.requestSubmit();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    escape(event, on());
    return;
  }
  if (field || !on()) return;
  if (event.timeStamp < leading) {
    leading = 0;
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (!link) return;
    event.preventDefault();
    link.click();
    return;
  }
  const act = event.key in ARROWS ? arrow(event) : named(event.key);
  if (act === "go") leading = event.timeStamp + WAIT;
  else if (act === "help") openHelp();
  else if (!act || acts[act]?.() !== true) return;
  event.preventDefault();
}

function named(key) {
  const now = keys();
  return Object.keys(now).find((act) => now[act] === key);
}

// Arrows scroll what is read; in the list they move from row to row.
const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };

function arrow(event) {
  if (!event.target.closest?.("[data-list]") || event.target.matches("input")) return null;
  return event.shiftKey ? `extend_${ARROWS[event.key]}` : ARROWS[event.key];
}
