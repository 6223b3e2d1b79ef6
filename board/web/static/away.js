// Without a connection the page stays readable, says so, and lets nobody decide: a decision that waits in a browser would
// be made about something that has changed meanwhile.
import { announce } from "./live.js";

export function watchConnection() {
  const banner = document.querySelector("[data-away]");
  if (!banner) return;
  const show = () => {
    const away = !navigator.onLine;
    if (away === !banner.hidden) return;
    banner.hidden = !away;
    for (const button of document.querySelectorAll("form[method=post] button[type=submit]")) {
      if (away && !button.disabled) {
        button.disabled = true;
        button.dataset.wasOpen = "";
      } else if (!away && "wasOpen" in button.dataset) {
        button.disabled = false;
        delete button.dataset.wasOpen;
      }
    }
    if (away) announce(banner.textContent.trim());
  };
  addEventListener("online", show);
  addEventListener("offline", show);
  show();
}
