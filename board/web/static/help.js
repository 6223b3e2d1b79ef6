// The list of keys: shown, switched off, changed one by one.
import { announce } from "./live.js";
import { change, on, reset, showKeys, switchKeys } from "./keymap.js";

const help = document.getElementById("help");

export function openHelp() {
  help?.showModal();
}

export function prepareHelp() {
  if (!help) return;
  for (const button of document.querySelectorAll("[data-help]")) {
    button.hidden = false;
    button.addEventListener("click", openHelp);
  }
  const box = help.querySelector("[data-keys-on]");
  box.checked = on();
  box.addEventListener("change", () => {
    switchKeys(box.checked);
    showKeys();
  });
  for (const cap of help.querySelectorAll("button[data-chord]")) {
    cap.addEventListener("click", () => cap.toggleAttribute("data-waits"));
    cap.addEventListener("blur", () => cap.removeAttribute("data-waits"));
    cap.addEventListener("keydown", (event) => replace(cap, event));
  }
  help.querySelector("[data-reset]").addEventListener("click", () => {
    reset();
    showKeys();
  });
}

// The key pressed after the button is the act's new one; Escape and the keys that move the focus are not taken.
function replace(cap, event) {
  if (!cap.hasAttribute("data-waits") || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    event.preventDefault();
    cap.removeAttribute("data-waits");
    return;
  }
  if ([...event.key].length !== 1 || event.key === " ") return;
  event.preventDefault();
  cap.removeAttribute("data-waits");
  change(cap.dataset.chord, event.key);
  showKeys();
  announce(`${cap.closest("div").querySelector("dd").textContent.trim()} ${event.key}`);
}
