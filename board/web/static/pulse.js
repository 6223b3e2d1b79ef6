// Keeps an open page true: the number that waits, and a hint when new reviews came in. The list itself never moves under
// the reader's hands.
import { announce } from "./live.js";

const EVERY = 20_000; // milliseconds; people work through a review in minutes

export function keepFresh() {
  const count = document.querySelector("[data-waiting]");
  if (!count) return;
  const hint = document.querySelector("[data-fresh]");
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/pulse", { redirect: "error" });
      if (!answer.ok) return;
      const { waiting, newest } = await answer.json();
      count.textContent = String(waiting);
      count.hidden = !waiting;
      if (hint?.hidden && newest > Number(hint.dataset.fresh)) {
        hint.hidden = false;
        announce(hint.textContent.trim());
      }
    } catch { /* away for a moment: the next look tells */ }
  };
  setInterval(look, EVERY);
  document.addEventListener("visibilitychange", look);
}
