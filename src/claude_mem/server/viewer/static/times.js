// Times in the zone and language of the browser. The server renders in that zone once it knows it.

const FORMATS = {
  time: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" }),
  moment: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
  day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" }),
};
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

export function localise(root) {
  for (const time of root.querySelectorAll("time[data-show]")) {
    const moment = new Date(time.dateTime);
    time.textContent = FORMATS[time.dataset.show].format(moment);
    time.title = FULL.format(moment);
  }
}

// Days depend on the zone: where the server used another one, the page is loaded once more.
export function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.includes(`claude_mem_zone=${zone}`)) return;
  document.cookie = `claude_mem_zone=${zone}; path=/; max-age=31536000; samesite=strict`;
  const offset = -new Date().getTimezoneOffset();
  if (offset !== Number(document.documentElement.dataset.offset) && document.cookie.includes("claude_mem_zone=")) location.reload();
}
