// Keeps an open page up to date. Everything works without it: the list reloads by itself, and a decision is
// checked by the server against what was shown.
"use strict";

(() => {
  const main = document.querySelector("main[data-events]");
  if (!main || !("EventSource" in window)) return;
  const announce = document.getElementById("announce");
  const source = new EventSource(main.dataset.events);

  async function renewList(version) {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("gates");
    const old = document.getElementById("gates");
    if (!fresh || !old) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(document.adoptNode(fresh));
    if (focused) {
      const again = [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused);
      if (again) again.focus();
    }
    document.title = page.title;
    main.dataset.version = version;
    announce.textContent = "The list has changed.";
  }

  source.addEventListener("version", (event) => {
    if (event.data === main.dataset.version) return;
    const changed = document.getElementById("changed");
    if (main.dataset.watches) {
      changed.hidden = false;
      announce.textContent = "This gate has changed since you opened it.";
    } else {
      renewList(event.data);
    }
  });
  source.addEventListener("bye", () => {
    source.close();
    location.reload();
  });
  window.addEventListener("pagehide", () => source.close());
})();
