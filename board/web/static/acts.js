// What the keys do. Each act says true when there was something to do.
import { announce } from "./live.js";

export const acts = {
  next: () => move(1),
  previous: () => move(-1),
  extend_next: () => extend(1),
  extend_previous: () => extend(-1),
  open: () => click(current()),
  back: () => click(document.querySelector("[data-back]")),
  before: () => click(beside(-1)),
  after: () => click(beside(1)),
  approve: () => reach("approve"),
  edit: () => reach("edit"),
  revise: () => reach("revise"),
  reject: () => reach("reject"),
  snooze: () => reach("snooze"),
  claim: () => reach("claim"),
  comment: () => reach("comment"),
  select: () => tick(current()),
  compare: () => turn(document.querySelector("[data-views]")),
  undo: () => send(document.querySelector("[data-undo]")),
  search: () => focus(document.querySelector("[data-find]")),
};

// Closes what is open, leaves a field, and at last goes back to the list.
export function escape(event, keysOn) {
  const open = document.querySelector("details.sheet-up[open], details.drop[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  } else if (event.target.matches?.("input, textarea, select")) {
    event.target.blur();
  } else if (keysOn) {
    acts.back();
  }
}

// The rows of the list: links in the inbox, rows in the table.
function rows() {
  return [...document.querySelectorAll("[data-list] a[href]")].filter(
    (link) => link.closest("tr, li")?.querySelector("a[href]") === link,
  );
}

function current() {
  const all = rows();
  const inside = document.activeElement?.closest?.("[data-list] li, [data-list] tr");
  return all.find((link) => inside?.contains(link)) ?? all.find((link) => link.getAttribute("aria-current"));
}

function move(step) {
  const links = rows().filter((link) => link.offsetParent);
  if (!links.length) return false;
  const start = links.indexOf(current());
  const focused = links[start]?.closest("li, tr").contains(document.activeElement);
  const place = start < 0 ? 0 : Math.min(Math.max(start + step, 0), links.length - 1);
  const target = !focused && start >= 0 && !document.querySelector("[data-review]")?.checkVisibility() ? start : place;
  links[target].focus();
  links[target].scrollIntoView({ block: "nearest" });
  return true;
}

// The row moved from and the row moved to are both selected.
function extend(step) {
  const from = box(current());
  if (!from) return false;
  select(from, true);
  move(step);
  select(box(current()), true);
  return true;
}

function tick(link) {
  const found = box(link);
  if (!found) return false;
  select(found, !found.checked);
  return true;
}

function box(link) {
  return link?.closest("li, tr")?.querySelector("input[type=checkbox]:not(:disabled)") ?? null;
}

function select(found, wanted) {
  if (!found || found.checked === wanted) return;
  found.checked = wanted;
  found.dispatchEvent(new Event("change", { bubbles: true }));
}

// The review before or after the open one, in the order of the list.
function beside(step) {
  if (!document.querySelector("[data-review]")) return null;
  const links = rows();
  const here = links.findIndex((link) => link.getAttribute("aria-current"));
  return here < 0 ? null : links[here + step] ?? null;
}

// An action of the open review gets the focus; where it asks for words, its form opens.
function reach(act) {
  const controls = [...document.querySelectorAll(`[data-act="${act}"]`)];
  const control = controls.find((found) => found.checkVisibility());
  if (!control) return false;
  const details = control.closest("details.sheet-up");
  if (details) {
    details.open = true;
    focus(details.querySelector(":is(input:not([type=hidden]), textarea, select, button[type=submit]):not(:disabled)"));
  } else if (control.matches("a")) {
    control.click();
  } else if (control.matches("textarea, input")) {
    control.focus();
    control.scrollIntoView({ block: "center" });
  } else {
    control.focus();
    announce(control.dataset.says ?? control.textContent.trim());
  }
  return true;
}

// The next way of looking at what changed.
function turn(views) {
  if (!views?.checkVisibility()) return false;
  const choices = [...views.querySelectorAll("input[type=radio]")];
  const next = choices[(choices.findIndex((choice) => choice.checked) + 1) % choices.length];
  next.checked = true;
  next.dispatchEvent(new Event("change", { bubbles: true }));
  announce(next.closest("label").textContent.trim());
  return true;
}

function focus(element) {
  if (!element?.checkVisibility()) return false;
  element.focus();
  element.select?.();
  return true;
}

function click(element) {
  element?.click();
  return Boolean(element);
}

function send(form) {
  form?.requestSubmit();
  return Boolean(form);
}
