// Says something to whoever cannot see it change.
export function announce(text) {
  const live = document.querySelector("[data-live]");
  if (live) live.textContent = text;
}
