// Keyboard: / searches, j and k move, enter opens, t is the timeline, esc goes back, ? helps.

const OPENED = "claude-mem-opened";

function items() {
  return [...document.querySelectorAll("[data-item]")];
}

function current() {
  return document.activeElement?.closest?.("[data-item]") ?? null;
}

function move(step) {
  const all = items();
  if (!all.length) return;
  const place = all.indexOf(current());
  const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + step, 0), all.length - 1);
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
}

function open(item) {
  const link = item.querySelector("[data-open]");
  if (link) link.click();
}

function back() {
  const dialog = document.querySelector("dialog[open]");
  if (dialog) dialog.close();
  else if (document.activeElement?.id === "find") leaveSearch();
  else if (location.pathname !== "/") {
    if (history.length > 1 && document.referrer.startsWith(location.origin)) history.back();
    else location.href = "/";
  } else document.activeElement?.blur();
}

function leaveSearch() {
  const first = items()[0];
  if (first) first.focus();
  else document.activeElement.blur();
}

const KEYS = {
  "/": () => document.getElementById("find").select(),
  j: () => move(1),
  k: () => move(-1),
  g: () => (location.href = "/"),
  t: () => {
    const timeline = current()?.dataset.timeline ?? document.querySelector("[data-page-timeline]")?.dataset.pageTimeline;
    if (timeline) location.href = timeline;
  },
  "?": () => document.getElementById("keys").showModal(),
};

function isTyping(target) {
  return target.matches?.("input, textarea, select, [contenteditable]");
}

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") {
      if (document.querySelector("dialog[open]")) return; // the browser closes it
      event.preventDefault();
      back();
    } else if (isTyping(event.target)) {
      if (event.target.id === "find" && event.key === "ArrowDown") {
        event.preventDefault();
        leaveSearch();
      }
    } else if (event.key === "Enter") {
      if (event.target.matches("[data-item]")) open(event.target);
    } else if (KEYS[event.key] && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  // Where one came from: that item has the focus again.
  document.addEventListener("click", (event) => {
    const item = event.target.closest?.("[data-item]");
    if (item?.id && event.target.closest("a")) sessionStorage.setItem(OPENED + location.pathname, item.id);
  });
  const opened = sessionStorage.getItem(OPENED + location.pathname);
  if (opened && performance.getEntriesByType("navigation")[0]?.type === "back_forward") document.getElementById(opened)?.focus();
}
