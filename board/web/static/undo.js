// Counts down how long a decision can still be undone, then takes the button away: the server would refuse it anyway.
export function countDown() {
  for (const form of document.querySelectorAll("[data-undo]")) {
    const end = Date.now() + Number(form.dataset.undo) * 1000;
    const shown = form.querySelector("[data-seconds]");
    const timer = setInterval(() => {
      const left = Math.ceil((end - Date.now()) / 1000);
      if (left > 0) {
        shown.textContent = String(left);
        return;
      }
      clearInterval(timer);
      form.remove();
    }, 250);
  }
}
