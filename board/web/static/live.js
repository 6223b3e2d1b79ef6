// Says something to whoever cannot see it change. Each message is a line of its own, so that one does not swallow the
// other where two come at once.
const KEPT = 15_000; // milliseconds: longer than a screen reader needs to come round to it

export function announce(text) {
  const live = document.querySelector("[data-live]");
  if (!live || !text) return;
  const line = document.createElement("p");
  line.textContent = text;
  live.append(line);
  setTimeout(() => line.remove(), KEPT);
}
