// Keeps the page of a task true while it is open: where it stands, how far it is, what is being written. What comes over
// the line is text and stays text; everything else is the server's own page, asked for again.
import { announce } from "./live.js";

const TOGETHER = 150; // milliseconds: events that come together are one change of the page
const LATER = 2_000; // somebody is at work in the page: it is changed when he is through
const AGAIN = 10_000; // where no stream can be opened, the page is asked for so often

export function followTask() {
  const main = document.getElementById("main");
  const begin = main?.querySelector("[data-follow]");
  if (!begin) return;
  const { follow, seq } = begin.dataset;
  const now = main.querySelector("[data-now]");
  let seen = Number(seq);
  let source = null;
  let timer = 0;
  let over = false;

  const open = () => {
    if (source || over || document.hidden) return; // a hidden page would keep one of the browser's few lines busy
    source = new EventSource(follow);
    source.addEventListener("status", (event) => { if (Number(event.lastEventId) > seen) renewIn(TOGETHER); });
    source.addEventListener("progress", (event) => showProgress(now, JSON.parse(event.data)));
    source.addEventListener("text", (event) => showText(now, JSON.parse(event.data)));
    source.addEventListener("end", () => {
      over = true;
      close();
      renewIn(TOGETHER);
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      close();
      renewIn(AGAIN);
    });
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const renewIn = (time) => {
    clearTimeout(timer);
    timer = setTimeout(renew, time);
  };
  const renew = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { redirect: "error" });
      if (!answer.ok) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
      const standing = fresh.querySelector("[data-seq]");
      over = !standing.dataset.follow;
      if (swap(main, fresh, now)) seen = Number(standing.dataset.seq);
      else renewIn(LATER);
      open();
    } catch {
      renewIn(AGAIN);
    }
  };

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    if (over) renewIn(TOGETHER);
  });
  open();
}

// Puts the server's page in the place of the old one. Where somebody is at work in it only the marks change: then false.
function swap(main, fresh, now) {
  const old = main.querySelector("[data-marks]");
  const marks = fresh.querySelector("[data-marks]");
  if (old.textContent !== marks.textContent) announce(marks.querySelector(".chip").textContent.trim());
  const focused = document.activeElement;
  const marked = document.getSelection();
  if (
    (focused !== main && main.contains(focused))
    || (!marked.isCollapsed && main.contains(marked.anchorNode))
    || main.querySelector("details.drop[open]")
  ) {
    old.replaceWith(marks);
    return false;
  }
  fresh.querySelector("[data-now]")?.replaceWith(now);
  main.replaceChildren(...fresh.childNodes);
  return true;
}

function showProgress(now, { percent, message }) {
  const bar = now.querySelector("progress");
  bar.hidden = percent === null;
  if (percent !== null) bar.value = percent;
  now.querySelector("[data-message]").textContent = message ?? "";
  now.hidden = false;
}

function showText(now, { attempt, offset, next, text }) {
  const field = now.querySelector("[data-text]");
  const known = field.dataset.attempt === String(attempt) ? Number(field.dataset.next) : 0;
  if (field.dataset.attempt !== String(attempt) || offset < known) field.textContent = "";
  else if (offset > known) field.append(" … ");
  const atEnd = field.scrollHeight - field.scrollTop - field.clientHeight < 20;
  field.append(text);
  field.dataset.attempt = attempt;
  field.dataset.next = next;
  if (atEnd) field.scrollTop = field.scrollHeight;
  now.querySelector("[data-written]").hidden = false;
  now.hidden = false;
}
