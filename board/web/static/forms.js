// Small helps for forms: quick texts, select all, filters that act at once, the field that is meant gets the focus.
import { announce } from "./live.js";

export function helpForms() {
  for (const chips of document.querySelectorAll("[data-chips]")) {
    chips.hidden = false;
    chips.addEventListener("click", (event) => {
      if (!(event.target instanceof HTMLButtonElement)) return;
      const field = document.getElementById(chips.dataset.chips);
      field.value = field.value ? `${field.value.trimEnd()}\n${event.target.textContent}` : event.target.textContent;
      field.focus();
    });
  }
  for (const details of document.querySelectorAll("details.sheet-up")) {
    details.addEventListener("toggle", () => {
      if (details.open) details.querySelector("input:not([type=hidden]), textarea, button[type=submit]")?.focus();
    });
  }
  for (const form of document.querySelectorAll("[data-filters]")) {
    form.addEventListener("change", (event) => { if (event.target.matches("[type=checkbox], select")) form.requestSubmit(); });
  }
  const all = document.querySelector("[data-all]");
  if (all) {
    const boxes = () => document.querySelectorAll("[data-rows] tbody input[name=task]");
    all.hidden = false;
    all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
  }
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.drop[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.querySelector("[data-refused]")?.focus();
  const toast = document.querySelector("[data-toast] span");
  if (toast) {
    // The next review follows at once: say what was decided, and start reading at its heading.
    document.querySelector("[data-review] h2")?.focus({ preventScroll: true });
    announce(toast.textContent.trim());
  }
}
