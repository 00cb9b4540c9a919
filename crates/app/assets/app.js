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
  // The page says from where on it does not know what happened.
  let source = null, cursor = one("main[data-stream]").dataset.cursor ?? null, timer = 0, last = 0, running = false, stale = false, broken = false;
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

// ---------- log: more of a run's output, before and behind what is shown ----------
for (const body of all("[data-log]")) readLog(body);

function readLog(body) {
  // No stream tells of output, so a run that goes on is asked again, a while after its last answer.
  const AGAIN_MS = 1000, LINES_MAX = 20000, NEAR = 48;
  const follow = one("[data-log-follow]"), live = one("[data-log-live]");
  let from = Number(body.dataset.from), next = Number(body.dataset.next), size = Number(body.dataset.size);
  let isLive = body.dataset.state === "live", isBusy = false, timer = 0;
  const later = one("[data-log-later]", body);
  const isAtEnd = () => body.scrollHeight - body.scrollTop - body.clientHeight < NEAR;
  const follows = () => follow?.getAttribute("aria-pressed") === "true";
  const toEnd = () => { body.scrollTop = body.scrollHeight; };

  async function ask(query) {
    const answer = await fetch(`${body.dataset.log}?view=part&${query}`);
    if (!answer.ok || answer.redirected) throw new Error(`the log answered ${answer.status}`);
    const number = (name) => Number(answer.headers.get(name));
    return {
      html: await answer.text(), from: number("x-log-from"), next: number("x-log-next"),
      size: number("x-log-size"), isLive: answer.headers.get("x-run-state") === "live",
    };
  }

  async function behind() {
    if (isBusy || document.hidden) return;
    isBusy = true;
    try {
      const part = await ask(`from=${next}`);
      const wasLive = isLive, stays = follows();
      if (part.html.trim()) {
        // A line that could still grow is sent again, with what it has become.
        for (const line of all("[data-open], [data-log-none]", body)) line.remove();
        body.insertAdjacentHTML("beforeend", part.html);
        trim();
        place();
      }
      const isStuck = part.next === next && part.next < part.size && part.html.trim() === "";
      next = part.next; size = part.size; isLive = part.isLive;
      if (stays) toEnd();
      if (isLive || (wasLive && !isStuck)) timer = setTimeout(behind, next < size && !one("[data-open]", body) ? 0 : AGAIN_MS);
      else ended();
    } catch { timer = setTimeout(behind, 5 * AGAIN_MS); } finally { isBusy = false; }
  }

  function trim() {
    const lines = all(".ll", body);
    if (lines.length <= LINES_MAX || !follows()) return;
    for (const line of lines.slice(0, lines.length - LINES_MAX)) line.remove();
    from = Number(lines[lines.length - LINES_MAX].id.slice(1));
    earlier();
  }

  // What stands below the lines says which ones they are, and how much there was when the page was made.
  function place() {
    one("[data-log-bytes]")?.remove();
    const lines = all(".ll > a", body), where = one("[data-log-place]");
    if (where && lines.length) where.textContent = `Lines ${lines[0].textContent} to ${lines.at(-1).textContent}`;
  }

  function ended() {
    live?.remove();
    follow?.remove();
  }

  // The link of what stands before, for whoever has no script; kept true for whoever has one.
  function earlier() {
    let link = one("[data-log-earlier]", body);
    if (from <= 0) { link?.remove(); return; }
    if (!link) {
      link = Object.assign(document.createElement("a"), { className: "log-more" });
      link.dataset.logEarlier = "";
      body.prepend(link);
    }
    link.href = `${body.dataset.log}?to=${from}`;
    link.textContent = "Earlier output";
  }

  async function before() {
    if (isBusy || from <= 0) return;
    isBusy = true;
    try {
      const part = await ask(`to=${from}`);
      const height = body.scrollHeight, top = body.scrollTop;
      if (part.from < from && part.html.trim()) {
        const first = one(".ll", body);
        if (first) first.insertAdjacentHTML("beforebegin", part.html); else body.insertAdjacentHTML("beforeend", part.html);
        from = part.from;
        earlier();
        place();
        body.scrollTop = top + body.scrollHeight - height;
      }
    } catch { /* The link is still there. */ } finally { isBusy = false; }
  }

  body.addEventListener("scroll", () => {
    if (body.scrollTop < NEAR) before();
    if (follow && follows() && !isAtEnd()) follow.setAttribute("aria-pressed", "false");
  }, { passive: true });
  body.addEventListener("click", (event) => {
    if (!event.target.closest("[data-log-earlier]")) return;
    event.preventDefault();
    before();
  });
  follow?.addEventListener("click", () => {
    follow.setAttribute("aria-pressed", String(!follows()));
    if (follows()) toEnd();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isLive && !later) { clearTimeout(timer); behind(); }
  });

  const isAsked = /^#b\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  // A page that was opened somewhere inside stays there; one that was opened at the end is there.
  if (isAsked) follow?.setAttribute("aria-pressed", "false");
  else if (!later && !new URLSearchParams(location.search).has("to")) toEnd();
  if (isLive && !later) {
    if (follow) follow.hidden = false;
    if (live) live.hidden = false;
    one("[data-log-still]")?.remove();
    timer = setTimeout(behind, AGAIN_MS);
  } else follow?.setAttribute("aria-pressed", "false");
}

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
