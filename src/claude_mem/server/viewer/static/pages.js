// The live parts of single pages: the preview of a context, the checks, the settings.

import { send, toast } from "./actions.js";

function startPreview() {
  const budget = document.getElementById("budget");
  if (!budget) return;
  const context = document.getElementById("context");
  const keep = document.getElementById("keep-budget");
  const saved = budget.value;
  let running = null;
  budget.addEventListener("input", async () => {
    document.getElementById("budget-value").textContent = `${budget.value} tokens`;
    running?.abort();
    running = new AbortController();
    try {
      const answer = await fetch(`${budget.dataset.url}?tokens=${budget.value}`, { signal: running.signal });
      const text = await answer.text();
      context.textContent = text || "Nothing: the budget is too small for any memory.";
      document.getElementById("used").textContent = answer.headers.get("x-tokens");
      document.getElementById("limit").textContent = budget.value;
      keep.dataset.value = budget.value;
      keep.hidden = budget.value === saved;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  });
}

function startDetails() {
  for (const details of document.querySelectorAll("details[data-load]"))
    details.addEventListener("toggle", async () => {
      const answer = await fetch(details.dataset.load, { headers: { "x-part": "draft" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      details.querySelector("p")?.replaceWith(page.getElementById("draft") ?? "It cannot be shown.");
    }, { once: true });
}

async function loadChecks() {
  const place = document.getElementById("load-checks");
  if (!place) return;
  place.textContent = "Checking…";
  place.className = "help";
  try {
    const answer = await fetch(place.dataset.url, { headers: { "x-part": "checks" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceWith(page.getElementById("checks"));
  } catch {
    place.textContent = "The checks could not be run: claude-mem doctor";
  }
}

async function change(form, value, agree = false) {
  const name = form.dataset.setting;
  try {
    const result = await send("/api/settings", { name, value, agree });
    form.elements.value.value = result.value;
    form.querySelector(".buttons").hidden = true;
    const origin = form.parentElement.querySelector(".origin");
    origin.textContent = result.source === "default" ? "default" : `from ${result.source}`;
    toast(result.needs_restart ? `${name} is saved. To apply it: claude-mem worker restart` : `${name} is saved.`);
  } catch (error) {
    if (error.field === "agree" && confirm(`${error.message}\n\nUse it?`)) await change(form, value, true);
    else toast(error.message);
  }
}

function startSettings() {
  for (const form of document.querySelectorAll("form[data-setting]")) {
    const field = form.elements.value;
    if (field.disabled) continue;
    field.addEventListener("input", () => (form.querySelector(".buttons").hidden = false));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      change(form, field.value);
    });
    form.querySelector("[data-reset]").addEventListener("click", () => change(form, null));
  }
}

export function start() {
  startPreview();
  startSettings();
  startDetails();
  loadChecks();
}
