import * as actions from "./actions.js";
import * as feed from "./feed.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as pages from "./pages.js";
import * as search from "./search.js";
import * as state from "./state.js";
import { localise, tellZone } from "./times.js";

tellZone();
localise(document);
for (const part of [keys, actions, state, feed, search, pages]) part.start();
for (const tools of document.querySelectorAll(".tools[hidden], [data-scripted][hidden]")) tools.hidden = false;
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
live.start();
