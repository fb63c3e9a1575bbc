// Edit, pin, mark as wrong, confirm and reject: memories and facts of a project.

import { ACTIONS, element, send, showForm, toast } from "./actions.js";
import { localise } from "./times.js";
import { showTools } from "./tools.js";

const FIELDS = {
  observation: ["type", "title", "subtitle", "narrative", "facts", "concepts"],
  summary: ["request", "completed", "learned", "investigated", "next_steps", "notes"],
  fact: ["subject", "value", "scope"],
};
const LISTS = ["facts", "concepts"]; // one line each
const LONG = ["narrative", "facts", "request", "completed", "learned", "investigated", "next_steps", "notes", "value"];
const TYPES = ["bugfix", "feature", "refactor", "change", "discovery", "decision"];

// The part of the page that shows a memory, as it is now.
async function refresh(button) {
  const shown = button.closest("[id]");
  const answer = await fetch(location.pathname, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const current = page.getElementById(shown.id);
  if (!current) return shown.remove();
  localise(current);
  showTools(current);
  shown.replaceWith(current);
  current.focus?.({ preventScroll: true });
}

function field(name, value) {
  const label = element("label", name.replace("_", " "));
  let input;
  if (name === "type") {
    input = element("select");
    input.append(...TYPES.map((type) => element("option", type)));
  } else input = element(LONG.includes(name) ? "textarea" : "input", "", LONG.includes(name) ? { rows: 3 } : {});
  input.name = name;
  input.value = Array.isArray(value) ? value.join("\n") : (value ?? "");
  label.append(input);
  return label;
}

async function edit(button) {
  const { id } = button.dataset;
  const { memory } = await send(`/api/memories/${id}`, undefined, "GET");
  const names = FIELDS[memory.memory_kind];
  const form = element("form");
  const cancel = element("button", "Cancel", { type: "button", className: "plain" });
  cancel.dataset.close = "";
  const buttons = element("div", "", { className: "buttons" });
  buttons.append(cancel, element("button", "Save", { className: "main" }));
  form.append(element("h2", "Edit", { id: "ask-title" }), ...names.map((name) => field(name, memory[name])), element("p", "", { className: "problem", hidden: true }), buttons);
  showForm(form, async (fields) => {
    for (const name of LISTS) if (name in fields) fields[name] = fields[name].split("\n").map((text) => text.trim()).filter(Boolean);
    await send(`/api/memories/${id}`, fields, "PATCH");
    await refresh(button);
    toast("Saved. No observer will overwrite it.");
  });
}

// A mark that can be taken back.
function mark(route, done, undone) {
  return async function run(button) {
    const { id } = button.dataset;
    const undo = "undo" in button.dataset;
    await send(`/api/memories/${id}/${route}`, { undo });
    await refresh(button);
    toast(undo ? undone : done, {
      label: "Undo",
      run: async () => {
        await send(`/api/memories/${id}/${route}`, { undo: !undo });
        location.reload();
      },
    });
  };
}

function decide(route, done) {
  return async (button) => {
    await send(`/api/facts/${button.dataset.id}/${route}`);
    toast(done);
    location.reload();
  };
}

export function start() {
  Object.assign(ACTIONS, {
    edit,
    pin: mark("pin", "Pinned: every session of the project is given it.", "No longer pinned."),
    wrong: mark("wrong", "Marked as wrong: nobody is given it any more.", "No longer wrong."),
    confirm: decide("confirm", "Confirmed."),
    reject: decide("reject", "Rejected."),
  });
}
