// The stream of the worker. It is closed while the tab is hidden: browsers allow few connections.

const listeners = [];
let source = null;
let cursor = document.documentElement.dataset.cursor;
let retry = 0;

export function onEvent(listener) {
  listeners.push(listener);
}

function tell(event) {
  for (const listener of listeners) listener(event);
}

function connect() {
  if (source || document.hidden) return;
  const stream = new EventSource(`/stream?after=${encodeURIComponent(cursor)}`);
  source = stream;
  stream.onopen = () => {
    retry = 0;
    tell({ type: "connected" });
  };
  stream.onmessage = (message) => {
    if (message.lastEventId) cursor = message.lastEventId;
    tell(JSON.parse(message.data));
  };
  // A new connection each time, with the last id: the worker may have been restarted. Then the
  // browser has to be let in again, which another tab may do.
  stream.onerror = async () => {
    disconnect();
    tell({ type: "disconnected" });
    retry = Math.min(retry + 1, 6);
    setTimeout(connect, 250 * 2 ** retry);
    const answer = await fetch("/api/processing").catch(() => null);
    if (answer?.status === 401) tell({ type: "locked" });
  };
}

function disconnect() {
  source?.close();
  source = null;
}

export function start() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
  connect();
}
