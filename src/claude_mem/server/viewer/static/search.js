// Search as one types, from any page; the address always says what is shown.

import { localise } from "./times.js";

const field = document.getElementById("find");
const WAIT_MS = 120;
let timer = 0;
let running = null;

async function load(url, part) {
  running?.abort();
  running = new AbortController();
  const headers = { accept: "text/html", ...(part ? { "x-part": part } : {}) };
  const answer = await fetch(url, { headers, signal: running.signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  localise(page);
  return page;
}

function address() {
  const values = new URLSearchParams();
  const filters = document.getElementById("filters");
  if (filters) for (const [name, value] of new FormData(filters)) if (value && name !== "q") values.set(name, value);
  values.set("q", field.value);
  return `/search?${values}`;
}

async function show() {
  const url = address();
  try {
    if (document.getElementById("search-page")) {
      const page = await load(url, "results");
      document.getElementById("results").replaceWith(page.getElementById("results"));
      document.querySelector("#filters [name=q]").value = field.value;
      history.replaceState(null, "", url);
    } else if (field.value.trim()) {
      const page = await load(url);
      document.getElementById("main").replaceChildren(...page.getElementById("main").children);
      history.pushState(null, "", url);
      addEventListener("popstate", () => location.reload());
    }
    document.title = `${field.value || "Search"} · claude-mem`;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

export function start() {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT_MS);
  });
  if (document.getElementById("search-page") && !document.querySelector("[data-item]")) field.focus();
}
