// Keeps a page true that only shows: asks for it again every few seconds, and puts in what has changed.
const EVERY = 5_000; // milliseconds

export function keepShowing() {
  if (!document.querySelector("[data-renewed]")) return;
  const renew = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { redirect: "error" });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-renewed]");
      const shown = document.querySelector("[data-renewed]");
      if (fresh && fresh.innerHTML !== shown.innerHTML && !isMarked(shown)) shown.replaceWith(document.adoptNode(fresh));
    } catch {
      // the next time
    }
  };
  setInterval(renew, EVERY);
  document.addEventListener("visibilitychange", renew);
}

// Somebody is about to copy a part of it.
function isMarked(shown) {
  const marked = document.getSelection();
  return !marked.isCollapsed && shown.contains(marked.anchorNode);
}
