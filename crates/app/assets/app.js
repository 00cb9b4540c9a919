// Everything here is an addition: each page works without it. It asks only this daemon, and keeps nothing but
// two cookies that say how a page is to be shown.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);

// ---------- zone: pages say moments in the reader's own time ----------
{
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.split("; ").find((pair) => pair.startsWith("conduit-zone="));
  if (zone && known !== `conduit-zone=${zone}`) {
    document.cookie = `conduit-zone=${zone}; path=/; max-age=31536000; samesite=strict`;
    // The page was made for another zone. A browser that keeps no cookies must not be asked again.
    if (one("main[data-stream]") && document.cookie.includes(`conduit-zone=${zone}`)) location.reload();
  }
}

// ---------- ages: what is so long ago, and what has gone on for so long ----------
const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const days = (number) => (number === 1 ? "day" : "days");

/** One unit: `12 s ago`, `in 3 min`. */
function ago(seconds) {
  const size = Math.floor(Math.abs(seconds));
  if (size < 2) return "just now";
  const text = size < MINUTE ? `${size} s`
    : size < HOUR ? `${Math.floor(size / MINUTE)} min`
    : size < DAY ? `${Math.floor(size / HOUR)} h`
    : `${Math.floor(size / DAY)} ${days(Math.floor(size / DAY))}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** Two units: `3 min 20 s`. */
function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (large, name, small, small_name) => (small ? `${large} ${name} ${small} ${small_name}` : `${large} ${name}`);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return two(Math.floor(whole / MINUTE), "min", whole % MINUTE, "s");
  if (whole < DAY) return two(Math.floor(whole / HOUR), "h", Math.floor((whole % HOUR) / MINUTE), "min");
  return two(Math.floor(whole / DAY), days(Math.floor(whole / DAY)), Math.floor((whole % DAY) / HOUR), "h");
}

// The daemon's clock and this one may differ; what is counted from is the page's own moment.
const drift = (() => {
  const made = Date.parse(document.documentElement.dataset.now ?? "");
  return Number.isNaN(made) ? 0 : Date.now() - made;
})();

function age(root = document) {
  const now = Date.now() - drift;
  const since = (element, name) => (now - Date.parse(element.dataset[name])) / 1000;
  for (const element of all("[data-ago]", root)) write(element, ago(since(element, "ago")));
  for (const element of all("[data-since]", root)) write(element, span(since(element, "since")));
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

setInterval(() => { if (!document.hidden) age(); }, 1000);

// ---------- live: the parts that changed are asked for again ----------
const live = (() => {
  const kinds = one("main[data-stream]")?.dataset.stream.trim();
  if (!kinds || !("EventSource" in window)) return null;
  const PAUSE = 250, PAUSE_BETWEEN = 1000, RETRY = 3000;
  let source = null, cursor = null, timer = 0, last = 0, running = false, stale = false, broken = false;
  let seen = new Date();

  function open() {
    if (source) return;
    const from = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
    source = new EventSource(`/v1/stream?kinds=${encodeURIComponent(kinds)}${from}`);
    source.onopen = () => {
      sign(true);
      // What happened while nobody listened is on the page after this.
      if (broken) refresh();
      broken = false;
    };
    source.addEventListener("change", note);
    source.addEventListener("reset", note);
    source.onerror = () => {
      broken = true;
      sign(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      // A refusal, which the browser does not try again by itself.
      close();
      setTimeout(() => { refresh(); if (!document.hidden) open(); }, RETRY);
    };
  }

  function close() {
    source?.close();
    source = null;
  }

  function note(event) {
    if (event.lastEventId) cursor = event.lastEventId;
    refresh();
  }

  /** Soon, and not more often than once a second. */
  function refresh() {
    if (running) { stale = true; return; }
    if (timer) return;
    const wait = Math.max(PAUSE, last + PAUSE_BETWEEN - Date.now());
    timer = setTimeout(() => { timer = 0; fetchPage(); }, wait);
  }

  async function fetchPage() {
    running = true;
    last = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.redirected && new URL(answer.url).pathname === "/login") {
        location.assign(answer.url);
        return;
      }
      if (answer.ok) {
        replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
        seen = new Date();
      }
    } catch {
      // The daemon is away; the stream says so and comes back.
    } finally {
      running = false;
      if (stale) { stale = false; refresh(); }
    }
  }

  function replace(next) {
    for (const old of all("[data-live][id]")) {
      const fresh = next.getElementById(old.id);
      if (!fresh || fresh.outerHTML === old.dataset.was) continue;
      if (isInUse(old)) { stale = true; continue; }
      const was = fresh.outerHTML;
      const adopted = document.importNode(fresh, true);
      keep(old, adopted);
      old.replaceWith(adopted);
      adopted.dataset.was = was;
      refocus(adopted);
      dress(adopted);
    }
  }

  /** Text that is being marked must not be pulled away. */
  function isInUse(element) {
    const marked = getSelection();
    return marked && !marked.isCollapsed && element.contains(marked.anchorNode);
  }

  let focused = null;
  function keep(old, fresh) {
    for (const details of all("details[open][id]", old)) {
      const same = fresh.querySelector(`#${CSS.escape(details.id)}`);
      if (same) same.open = true;
    }
    const active = document.activeElement;
    focused = active && old.contains(active) ? { id: active.id, href: active.getAttribute("href") } : null;
  }

  function refocus(fresh) {
    if (!focused) return;
    const { id, href } = focused;
    const same = id ? fresh.querySelector(`#${CSS.escape(id)}`)
      : href ? all("a[href]", fresh).find((link) => link.getAttribute("href") === href) : null;
    same?.focus({ preventScroll: true });
    focused = null;
  }

  function sign(isLive) {
    for (const element of all("[data-live-sign]")) element.hidden = !isLive;
    const banner = one("#away");
    if (!banner) return;
    banner.hidden = isLive;
    write(one("[data-seen]", banner), seen.toLocaleTimeString());
  }

  // A browser opens few connections to one host, so a page that nobody looks at gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else { broken = true; open(); }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) { broken = true; open(); } });
  open();
  return { refresh };
})();

// ---------- copy ----------
const canCopy = Boolean(navigator.clipboard);

/** Shows what only works with this script. */
function dress(root = document) {
  age(root);
  for (const button of all("[data-copy]", root)) button.hidden = !canCopy;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = one("code", button.parentElement)?.textContent ?? "";
  const label = button.dataset.label ?? button.getAttribute("aria-label");
  button.dataset.label = label;
  try {
    await navigator.clipboard.writeText(text);
    button.setAttribute("aria-label", "Copied");
    button.classList.add("copied");
  } catch {
    button.setAttribute("aria-label", "Not copied");
  }
  setTimeout(() => { button.setAttribute("aria-label", label); button.classList.remove("copied"); }, 1500);
});

// What is sent twice by an impatient finger is asked once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => { for (const form of all("form[data-sent]")) delete form.dataset.sent; });

// ---------- keys ----------
{
  const places = { r: "/", e: "/events", w: "/work", c: "/config", h: "/health", s: "/settings" };
  let going = 0;

  const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

  function step(by) {
    const rows = all("[data-row]").filter((row) => row.offsetParent !== null);
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
    const link = one("a[href]", rows[next]);
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (one("dialog[open]")) return;
    const place = going && Date.now() - going < 1500 ? places[event.key] : null;
    going = 0;
    if (place) { event.preventDefault(); location.assign(place); return; }
    switch (event.key) {
      case "?": one("#keys")?.showModal(); break;
      case "/": one("[data-search]")?.focus(); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "g": going = Date.now(); break;
      default: return;
    }
    event.preventDefault();
  });
}

dress();
