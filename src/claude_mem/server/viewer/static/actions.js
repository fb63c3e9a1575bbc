// Changes: each says what it will do before it does it, and offers undo where there is one.

import { toggleTheme } from "./theme.js";

const ask = document.getElementById("ask");

export async function send(path, body = {}, method = "POST") {
  const headers = { "content-type": "application/json", "claude-mem-confirmation": localStorage.getItem("confirmation") ?? "" };
  const content = method === "GET" ? {} : { headers, body: JSON.stringify(body) };
  const answer = await fetch(path, { method, ...content });
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(result.error ?? `The worker answered with ${answer.status}.`), { field: result.field });
  return result;
}

export function toast(text, action) {
  const message = document.createElement("p");
  message.className = "toast";
  message.append(text);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.label;
    button.onclick = () => {
      message.remove();
      Promise.resolve(action.run()).catch((error) => toast(error.message));
    };
    message.append(button);
  }
  document.getElementById("toasts").replaceChildren(message);
  setTimeout(() => message.remove(), action ? 60000 : 6000);
}

export function element(tag, text, properties = {}) {
  return Object.assign(document.createElement(tag), text ? { textContent: text } : {}, properties);
}

// A form in the dialog; `submit` gets its fields.
export function showForm(form, submit) {
  ask.replaceChildren(form);
  const shown = ask.querySelector("form");
  shown.querySelector("[data-close]").onclick = () => ask.close();
  shown.onsubmit = async (event) => {
    event.preventDefault();
    try {
      await submit(Object.fromEntries(new FormData(shown)));
      ask.close();
    } catch (error) {
      const problem = shown.querySelector(".problem");
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  ask.showModal();
  return shown;
}

export function confirmForm(title, lines, label) {
  const form = element("form");
  form.append(element("h2", title, { id: "ask-title" }), ...lines.map((line) => element("p", line, { className: "help" })));
  const buttons = element("div", "", { className: "buttons" });
  const cancel = element("button", "Cancel", { type: "button", className: "plain" });
  cancel.dataset.close = "";
  buttons.append(cancel, element("button", label, { className: "danger" }));
  form.append(element("p", "", { className: "problem", hidden: true }), buttons);
  return form;
}

function counted(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count).map(([name, count]) => `${count} ${name}`);
  return parts.join(", ") || "nothing";
}

async function forget(button) {
  const { ids, session, project, after } = button.dataset;
  const what = ids ? { ids: ids.split(",") } : session ? { session } : { project };
  const preview = await send("/api/forget", what);
  const lines = [`This will go: ${counted(preview.counts)}.`, ...(preview.examples ?? []).slice(0, 3).map((text) => `“${text}”`), "You can undo it for a while."];
  showForm(confirmForm("Forget?", lines, "Forget"), async () => {
    const done = await send("/api/forget", { ...what, confirm: preview.confirm });
    const item = button.closest("[data-item]");
    if (after) sessionStorage.setItem("claude-mem-undo", JSON.stringify(done));
    if (after) return (location.href = after);
    item?.classList.add("lost");
    return offerUndo(done, item);
  });
}

function offerUndo(done, item) {
  toast(`Forgotten: ${counted(done.counts)}.`, {
    label: "Undo",
    run: async () => {
      await send("/api/forget/undo", { undo: done.undo });
      item?.classList.remove("lost");
      toast("Restored.");
    },
  });
}

async function setPaused(isPaused) {
  await send(isPaused ? "/api/pause" : "/api/resume");
  location.reload();
}

async function setExcluded(key, isExcluded) {
  const { settings } = await (await fetch("/api/settings")).json();
  const name = "CLAUDE_MEM_EXCLUDED_PROJECTS";
  const globs = settings.find((setting) => setting.name === name).value.split(",").filter(Boolean);
  const value = (isExcluded ? [...globs, key] : globs.filter((glob) => glob !== key)).join(",");
  if (!isExcluded && value === globs.join(",")) throw new Error(`It is excluded by a pattern: change ${name} in the settings.`);
  await send("/api/settings", { name, value: value || null });
  location.reload();
}

async function mergeProject(button) {
  const { key } = button.dataset;
  const { projects } = await (await fetch("/api/projects")).json();
  const form = confirmForm("Merge this project?", ["All of its memories move to another project, and its directories belong to that one from now on."], "Merge");
  const select = element("select", "", { name: "into" });
  for (const { key: other } of projects.filter((project) => project.key !== key)) select.append(element("option", other, { value: other }));
  const label = element("label", "Into ");
  label.append(select);
  form.querySelector(".problem").before(label);
  showForm(form, async ({ into }) => {
    await send("/api/projects/merge", { project: key, into });
    location.href = "/projects";
  });
}

function splitDirectory(button) {
  const { directory } = button.dataset;
  const lines = [directory, "This directory becomes a project of its own, with the sessions that ran there."];
  showForm(confirmForm("Split it off?", lines, "Split off"), async () => {
    await send("/api/projects/split", { directory });
    location.reload();
  });
}

function joinDirectory(button) {
  const { directory } = button.dataset;
  const lines = [directory, "Sessions in this directory get the memories of the project that it claims to be, and theirs move to that project."];
  showForm(confirmForm("Join the project?", lines, "Join"), async () => {
    await send("/api/projects/join", { directory });
    location.href = "/projects";
  });
}

export const ACTIONS = {
  merge: mergeProject,
  split: splitDirectory,
  join: joinDirectory,
  theme: toggleTheme,
  forget,
  pause: () => setPaused(true),
  resume: () => setPaused(false),
  save: () => {
    const form = showForm(document.getElementById("save-form").content.cloneNode(true), async (fields) => {
      const saved = await send("/api/memories", fields);
      toast(saved.new ? "Saved." : "This memory was saved before.");
    });
    const project = document.querySelector("[data-project-key]")?.dataset.projectKey;
    if (project) form.elements.project.value = project;
  },
  exclude: (button) => {
    const lines = ["From now on nothing of this project is recorded. What is remembered of it stays, and sessions are still given it."];
    showForm(confirmForm("Exclude this project?", lines, "Exclude"), () => setExcluded(button.dataset.key, true));
  },
  include: (button) => setExcluded(button.dataset.key, false),
  setting: async (button) => {
    const { name, value } = button.dataset;
    await send("/api/settings", { name, value });
    button.hidden = true;
    toast("Saved: every session is given this from now on.");
  },
  retry: async () => {
    const { retried } = await send("/api/queue/retry");
    toast(`${retried} queued again.`);
  },
  undo: async (button) => {
    await send("/api/forget/undo", { undo: button.dataset.token });
    button.closest("li").remove();
    toast("Restored.");
  },
};

export function start() {
  const forgotten = sessionStorage.getItem("claude-mem-undo");
  sessionStorage.removeItem("claude-mem-undo");
  if (forgotten) offerUndo(JSON.parse(forgotten));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    if (button && ACTIONS[button.dataset.action]) Promise.resolve(ACTIONS[button.dataset.action](button)).catch((error) => toast(error.message));
  });
}
