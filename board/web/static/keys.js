// Single keys, as the help lists them. Off while somebody types (also with an input method) or holds a modifier, and for
// good where the box in the help is cleared.
import { announce } from "./live.js";

const STORED = "board.keys";
const help = document.getElementById("help");

export function listenForKeys() {
  document.addEventListener("keydown", onKey);
  const button = document.querySelector("[data-help]");
  if (button && help) {
    button.hidden = false;
    button.addEventListener("click", () => help.showModal());
    const box = help.querySelector("[data-keys-on]");
    box.checked = on();
    box.addEventListener("change", () => remember(box.checked));
  }
}

function on() {
  try { return localStorage.getItem(STORED) !== "off"; } catch { return true; }
}

function remember(wanted) {
  try { localStorage.setItem(STORED, wanted ? "on" : "off"); } catch { /* kept for this page only */ }
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
  if (event.ctrlKey || event.metaKey || event.altKey || help?.open) return;
  if (event.key === "Escape") {
    escape(event);
    return;
  }
  if (field || !on()) return;
  const act = ACTS[event.key];
  if (act && act() !== false) event.preventDefault();
}

const ACTS = {
  j: () => move(1),
  k: () => move(-1),
  a: () => reach("a"),
  r: () => reach("r"),
  d: () => reach("d"),
  "/": () => focus(document.querySelector("[data-find]")),
  "?": () => { if (!help) return false; help.showModal(); },
};

// The next or previous row of the list: links in the inbox, rows in the table.
function move(step) {
  const links = [...document.querySelectorAll("[data-list] a[href]")].filter(
    (link) => link.closest("tr, li")?.querySelector("a[href]") === link && link.offsetParent,
  );
  if (!links.length) return false;
  const here = links.findIndex((link) => link === document.activeElement);
  const start = here >= 0 ? here : links.findIndex((link) => link.getAttribute("aria-current"));
  const place = here < 0 && start < 0 ? 0 : Math.min(Math.max(start + step, 0), links.length - 1);
  links[place].focus();
  links[place].scrollIntoView({ block: "nearest" });
}

// An action of the open review gets the focus; where it asks for words, its form opens.
function reach(key) {
  const control = document.querySelector(`[data-key="${key}"]`);
  if (!control || !control.checkVisibility()) return false;
  const details = control.closest("details");
  if (details) {
    details.open = true;
    details.querySelector("input:not([type=hidden]), textarea, button[type=submit]")?.focus();
  } else {
    control.focus();
    announce(control.firstElementChild?.nextSibling?.textContent.trim() ?? "");
  }
}

function focus(element) {
  if (!element || !element.checkVisibility()) return false;
  element.focus();
  element.select?.();
}

// Closes what is open, leaves a field, and at last goes back to the list.
function escape(event) {
  const open = document.querySelector("details.sheet-up[open], details.drop[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  } else if (event.target.matches?.("input, textarea, select")) {
    event.target.blur();
  } else if (on()) {
    document.querySelector("[data-back]")?.click();
  }
}
