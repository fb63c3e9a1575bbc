// Changes: each says what it will do before it does it, and offers undo where there is one.

import { toggleTheme } from "./theme.js";

const ask = document.getElementById("ask");

export async function send(path, body = {}, method = "POST") {
  const answer = await fetch(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(result.error ?? `The worker answered with ${answer.status}.`);
  return result;
}

export function toast(text, action) {
  const toast = document.createElement("p");
  toast.className = "toast";
  toast.append(text);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.label;
    button.onclick = () => {
      toast.remove();
      action.run();
    };
    toast.append(button);
  }
  document.getElementById("toasts").replaceChildren(toast);
  setTimeout(() => toast.remove(), action ? 30000 : 5000);
}

function showForm(template, submit) {
  ask.replaceChildren(document.getElementById(template).content.cloneNode(true));
  const form = ask.querySelector("form");
  form.querySelector("[data-close]").onclick = () => ask.close();
  form.onsubmit = async (event) => {
    event.preventDefault();
    try {
      await submit(Object.fromEntries(new FormData(form)));
      ask.close();
    } catch (error) {
      const problem = form.querySelector(".problem");
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  ask.showModal();
  return form;
}

async function setPaused(isPaused) {
  await send(isPaused ? "/api/pause" : "/api/resume");
  location.reload();
}

const ACTIONS = {
  theme: toggleTheme,
  pause: () => setPaused(true),
  resume: () => setPaused(false),
  save: () => {
    const form = showForm("save-form", async (fields) => {
      const saved = await send("/api/memories", fields);
      toast(saved.new ? "Saved." : "This memory was saved before.");
    });
    const project = document.querySelector("[data-project-key]")?.dataset.projectKey;
    if (project) form.elements.project.value = project;
  },
};

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    if (button && ACTIONS[button.dataset.action]) Promise.resolve(ACTIONS[button.dataset.action](button)).catch((error) => toast(error.message));
  });
}
