// Tells that a review is open, is worked on, or was left; shows who else has it open, and for how long it is taken.
import { announce } from "./live.js";

const EVERY = 20_000; // milliseconds; see HEARD_WITHIN

export function bePresent() {
  const place = document.querySelector("[data-present]");
  if (!place?.parentElement.offsetParent) return; // on a phone the list stands alone
  const also = place.querySelector("[data-also]");
  const held = place.querySelector("[data-held]");
  const left = place.querySelector("[data-left]");
  let does = "";
  let written = false;
  let until = performance.now() + Number(left.dataset.left) * 1_000;

  const body = (what) => new URLSearchParams({ csrf: place.dataset.csrf, does: what });
  const tell = async () => {
    if (document.hidden) return;
    const what = does;
    does = "";
    try {
      const answer = await fetch(place.dataset.present, { method: "POST", body: body(what), redirect: "error" });
      if (answer.ok) show(await answer.json());
    } catch { /* away for a moment: the next time tells */ }
  };
  const say = (line, words, aloud = true) => {
    const shown = line.querySelector("[data-words]");
    if (aloud && words && shown.textContent !== words) announce(words);
    shown.textContent = words;
    line.hidden = !words;
  };
  const show = (now) => {
    say(also, now.also);
    say(held, now.held, now.left === 0); // of what one has oneself there is no news
    until = performance.now() + now.left * 1_000;
    count();
  };
  const count = () => {
    const seconds = Math.max(0, Math.round((until - performance.now()) / 1_000));
    left.hidden = !seconds;
    left.textContent = seconds ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "";
  };

  for (const kind of ["keydown", "pointerdown"]) {
    document.addEventListener(kind, () => { does ||= "active"; }, { passive: true });
  }
  document.addEventListener("input", (event) => {
    if (written || !/\/reviews\/\d+\/(decision|edit)/.test(event.target.closest?.("form")?.getAttribute("action"))) return;
    written = true;
    does = "writing";
    tell();
  });
  window.addEventListener("pagehide", () => navigator.sendBeacon(place.dataset.present, body("left")));
  window.addEventListener("pageshow", (event) => { if (event.persisted) tell(); });
  setInterval(tell, EVERY);
  setInterval(count, 1_000);
  count();
  tell();
}
