// The feed: cards that come and change while one looks, and older ones when one scrolls.

import { onEvent } from "./live.js";
import { localise } from "./times.js";

const feed = document.getElementById("feed");
const waiting = new Map(); // turn -> timer, so that a burst of events is one request
const WAIT_MS = 150;
const RELOAD = ["reset", "forgotten", "restored", "changed", "memory"];

async function fetchNodes(url) {
  const answer = await fetch(url, { headers: { accept: "text/html" } });
  if (answer.status === 401) location.reload(); // the cookie has expired
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const template = document.createElement("template");
  template.innerHTML = await answer.text();
  localise(template.content);
  return [...template.content.children];
}

// Headings repeat where cards were inserted or removed: one for each run of cards stays.
function tidy() {
  let day = null;
  let session = null;
  for (const node of [...feed.children]) {
    if (node.matches(".day")) {
      if (node.dataset.day === day) node.remove();
      else [day, session] = [node.dataset.day, null];
    } else if (node.matches(".session")) {
      const next = nextCard(node);
      const isUseless = !next || next.dataset.session !== node.dataset.session;
      if (node.dataset.session === session || isUseless) node.remove();
      else session = node.dataset.session;
    } else if (node.matches(".card")) {
      session = node.dataset.session;
    }
  }
  for (const heading of feed.querySelectorAll(".day")) {
    const next = heading.nextElementSibling;
    if (!next || next.matches(".day, .more")) heading.remove();
  }
}

function nextCard(node) {
  let next = node.nextElementSibling;
  while (next && next.matches(".session")) next = next.nextElementSibling;
  return next?.matches(".card") ? next : null;
}

function isOlder(card, than) {
  const [at, other] = [Number(card.dataset.at), Number(than.dataset.at)];
  return at < other || (at === other && Number(card.dataset.turn) < Number(than.dataset.turn));
}

// At its place by time, with its headings; a card that is there already is replaced.
function place(nodes) {
  const card = nodes.find((node) => node.matches(".card"));
  const existing = document.getElementById(card.id);
  if (existing) {
    const hadFocus = existing.contains(document.activeElement);
    existing.replaceWith(card);
    if (hadFocus) card.focus({ preventScroll: true });
    return;
  }
  const cards = [...feed.querySelectorAll(".card")];
  const next = cards.find((other) => isOlder(other, card));
  if (!next && feed.querySelector(".more")) return; // it belongs to a page that is not loaded yet
  document.getElementById("empty")?.remove();
  card.classList.add("fresh");
  if (!next) {
    feed.append(...nodes);
  } else {
    const previous = cards[cards.indexOf(next) - 1];
    const heads = headsOf(next);
    if (previous && previous.dataset.session === next.dataset.session && previous.dataset.day === next.dataset.day)
      next.before(...nodes, ...heads); // splits a run of cards of one session
    else (firstHead(next) ?? next).before(...nodes);
  }
  tidy();
}

function headsOf(card) {
  let head = card;
  while (head && !head.matches(".session")) head = head.previousElementSibling;
  return head ? [head.cloneNode(true)] : [];
}

// The first of the headings directly before a card.
function firstHead(card) {
  let first = null;
  for (let node = card.previousElementSibling; node?.matches(".day, .session"); node = node.previousElementSibling) first = node;
  return first;
}

async function refresh(turn) {
  waiting.delete(turn);
  const filters = feed.dataset.filters.replace(/^&/, "?");
  const nodes = await fetchNodes(`/turn/${turn}/card${filters}`);
  if (nodes.length) place(nodes);
  else {
    document.getElementById(`turn-${turn}`)?.remove();
    tidy();
  }
}

function refreshSoon(turn) {
  if (!waiting.has(turn)) waiting.set(turn, setTimeout(() => refresh(turn).catch(() => {}), WAIT_MS));
}

// After a reset: everything down to the last card that is shown.
async function reload() {
  const last = [...feed.querySelectorAll(".card")].at(-1);
  const filters = feed.dataset.filters;
  const nodes = [];
  let url = `/feed?${filters.slice(1)}`;
  for (let pages = 0; url && pages < 20; pages += 1) {
    const page = await fetchNodes(url);
    const more = page.find((node) => node.matches(".more"));
    nodes.push(...page.filter((node) => node !== more));
    url = more?.querySelector("a").dataset.more;
    const lowest = nodes.findLast((node) => node.matches(".card"));
    if (!last || !lowest || isOlder(lowest, last) || lowest.dataset.turn === last.dataset.turn) {
      if (more) nodes.push(more);
      break;
    }
  }
  const focused = document.activeElement?.closest?.(".card")?.id;
  feed.replaceChildren(...nodes);
  tidy();
  watchEnd();
  if (nodes.length) document.getElementById("empty")?.remove();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

const atEnd = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && append(), { rootMargin: "800px" });

function watchEnd() {
  atEnd.disconnect();
  const more = feed.querySelector(".more");
  if (more) atEnd.observe(more);
}

let isAppending = false;
async function append() {
  const more = feed.querySelector(".more");
  if (!more || isAppending) return;
  isAppending = true;
  try {
    const nodes = await fetchNodes(more.querySelector("a").dataset.more);
    more.replaceWith(...nodes.filter((node) => !node.id || !document.getElementById(node.id)));
    tidy();
  } catch {
    // The link stays: a click on it loads the page.
  }
  isAppending = false;
  watchEnd();
}

export function start() {
  if (!feed) return;
  watchEnd();
  if (!("live" in feed.dataset)) return;
  onEvent((event) => {
    if (event.turn_id) refreshSoon(event.turn_id);
    else if (RELOAD.includes(event.type)) reload().catch(() => {});
  });
}
