// The line that says what the worker is doing, quietly.

import { onEvent } from "./live.js";

const line = document.getElementById("state");
let isConnected = true;
let isLocked = false; // the worker was restarted, or the cookie has expired
let state = { isProcessing: line.classList.contains("working"), queueDepth: line.classList.contains("busy") ? 1 : 0 };

function show() {
  const isPaused = Boolean(line.dataset.paused);
  const [name, words] = !isConnected
    ? ["off", isLocked ? "To connect again: claude-mem open" : "Not connected"]
    : state.queueDepth
      ? ["busy", `${state.queueDepth} ${state.queueDepth === 1 ? "turn" : "turns"} in the queue`]
      : isPaused
        ? ["paused", "Recording is paused"]
        : state.isProcessing
          ? ["working", "A session is working"]
          : ["", "Up to date"];
  line.className = name;
  line.title = `Observer: ${line.dataset.observer}`;
  const text = line.querySelector(".words");
  if (text.textContent !== words) text.textContent = words;
}

export function start() {
  onEvent((event) => {
    if (event.type === "connected" || event.type === "disconnected") [isConnected, isLocked] = [event.type === "connected", false];
    else if (event.type === "locked") isLocked = true;
    else if (event.type === "processing") state = event;
    else return;
    show();
  });
}
