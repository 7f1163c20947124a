// Keeps an open page up to date. Everything works without it: lists reload by themselves, and whatever is sent is
// checked by the server against how things stand.
"use strict";

(() => {
  const main = document.querySelector("main[data-events]");
  if (!main || !("EventSource" in window)) return;
  const announce = document.getElementById("announce");
  const GLANCE_MS = 60000; // how often a page looks that nobody sees
  const AGAIN_MS = 10000; // how long a page waits that was not let in
  let source = null;
  let later = 0;
  let latest = main.dataset.version;
  let renewing = false;

  // What is told apart by itself in a part that is put in anew: by its id, by where it leads, by what it opens.
  function sign(element) {
    if (element.id) return (within) => within.querySelector(`#${CSS.escape(element.id)}`);
    const details = element.closest("details[id]");
    if (element.tagName === "SUMMARY" && details) {
      return (within) => within.querySelector(`#${CSS.escape(details.id)} > summary`);
    }
    const href = element.getAttribute("href");
    return (within) => [...within.querySelectorAll("a")].find((link) => link.getAttribute("href") === href);
  }

  function seen(element) {
    const place = element.getBoundingClientRect();
    return place.height > 0 && place.top >= 0 && place.top < window.innerHeight && !element.closest("svg");
  }

  function selecting(old) {
    const selection = document.getSelection();
    return Boolean(selection) && !selection.isCollapsed && old.contains(selection.anchorNode);
  }

  function put(old, fresh) {
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const focused = active && sign(active);
    const opened = new Map([...old.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    const scrolled = [...old.querySelectorAll("[id]")].filter((one) => one.scrollTop || one.scrollLeft)
      .map((one) => [one.id, one.scrollTop, one.scrollLeft]);
    // What the reader looks at stays where it is: the element with the focus, else the first one in view.
    const anchor = active && seen(active) ? active : [...old.querySelectorAll("[id]")].find(seen);
    const anchored = anchor && sign(anchor);
    const top = anchor ? anchor.getBoundingClientRect().top : 0;
    old.replaceWith(document.adoptNode(fresh));
    for (const one of fresh.querySelectorAll("details[id]")) if (opened.has(one.id)) one.open = opened.get(one.id);
    for (const [id, down, across] of scrolled) {
      const one = document.getElementById(id);
      if (one) [one.scrollTop, one.scrollLeft] = [down, across];
    }
    const again = anchored && anchored(fresh);
    if (again && window.scrollY) window.scrollBy({ top: again.getBoundingClientRect().top - top, behavior: "instant" });
    const found = focused && focused(fresh);
    if (found) found.focus({ preventScroll: true });
    if (fresh.dataset.live) announce.textContent = fresh.dataset.live;
  }

  async function fetched() {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  async function renew() {
    if (renewing) return;
    renewing = true;
    try {
      for (let wanted = null; latest !== wanted && latest !== main.dataset.version; ) {
        wanted = latest;
        const page = await fetched();
        const given = page && page.querySelector("main[data-version]");
        if (!given) return;
        const parts = [...document.querySelectorAll("[data-live]")];
        if (parts.some(selecting)) {
          document.addEventListener("selectionchange", renew, { once: true });
          return;
        }
        for (const old of parts) {
          const fresh = page.getElementById(old.id);
          if (fresh && fresh.outerHTML !== old.outerHTML) put(old, fresh);
        }
        document.title = page.title;
        main.dataset.version = given.dataset.version;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the server is away: the stream tells when it is back
    } finally {
      renewing = false;
    }
  }

  function told(version) {
    latest = version;
    if (latest === main.dataset.version) return;
    const changed = document.getElementById("changed");
    if (main.dataset.watches) {
      changed.hidden = false;
      announce.textContent = "This gate has changed since you opened it.";
    } else {
      renew();
    }
  }

  // Browsers have few connections to one server for all their tabs, and each stream keeps one: a page that nobody
  // sees lets its stream go and looks now and then, so that its title goes on telling how many wait.
  function leave() {
    clearTimeout(later);
    if (source) source.close();
    source = null;
  }

  async function glance() {
    try {
      const page = await fetched();
      const given = page && page.querySelector("main[data-version]");
      if (given && document.hidden) told(given.dataset.version);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    if (document.hidden) later = setTimeout(glance, GLANCE_MS);
  }

  // A stream that was refused does not come again by itself: the session is over, or the server takes no more pages.
  async function refused() {
    leave();
    later = setTimeout(follow, AGAIN_MS);
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.redirected) location.reload();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }

  function follow() {
    leave();
    if (document.hidden) {
      later = setTimeout(glance, GLANCE_MS);
      return;
    }
    source = new EventSource(main.dataset.events);
    source.addEventListener("version", (event) => told(event.data));
    source.addEventListener("bye", () => {
      leave();
      location.reload();
    });
    source.addEventListener("error", (event) => {
      if (event.target === source && source.readyState === EventSource.CLOSED) refused();
    });
  }

  follow();
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) follow();
  });
})();
