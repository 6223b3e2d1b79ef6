// Keeps an open page true: the number that waits, and on the inbox how many came in since it was loaded. The list itself
// never moves under the reader's hands.
import { announce } from "./live.js";

const EVERY = 20_000; // milliseconds, where nothing is told: people work through a review in minutes

export function keepFresh() {
  const count = document.querySelector("[data-waiting]");
  if (!count) return;
  const hint = document.querySelector("[data-fresh]");
  const asked = hint ? `?${hint.dataset.narrow}&since=${hint.dataset.fresh}` : "";
  let source = null;

  const show = ({ waiting, new: fresh, said }) => {
    count.textContent = String(waiting);
    count.hidden = !waiting;
    if (!hint) return;
    const words = hint.querySelector("[data-said]");
    if (fresh && (hint.hidden || words.textContent !== said)) announce(said);
    words.textContent = said;
    hint.hidden = !fresh;
  };
  const look = async () => {
    if (document.hidden || source?.readyState === EventSource.OPEN) return;
    try {
      const answer = await fetch(`/pulse${asked}`, { redirect: "error" });
      if (answer.ok) show(await answer.json());
    } catch { /* away for a moment: the next look tells */ }
  };
  // Only the inbox is told: a browser has few lines to one host, and a hidden page would keep one of them busy.
  const open = () => {
    if (!hint || document.hidden || (source && source.readyState !== EventSource.CLOSED)) return;
    source = new EventSource(`/pulse/live${asked}`);
    source.addEventListener("pulse", (event) => show(JSON.parse(event.data)));
  };
  const close = () => {
    source?.close();
    source = null;
  };

  setInterval(() => {
    look();
    open();
  }, EVERY);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    look();
    open();
  });
  open();
}
