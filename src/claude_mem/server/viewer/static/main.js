import * as actions from "./actions.js";
import * as editing from "./editing.js";
import * as feed from "./feed.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as pages from "./pages.js";
import * as search from "./search.js";
import * as state from "./state.js";
import { localise, tellZone } from "./times.js";
import { showTools } from "./tools.js";

if (location.hash.startsWith("#confirm=")) {
  localStorage.setItem("confirmation", location.hash.slice("#confirm=".length));
  history.replaceState(null, "", location.pathname);
}
tellZone();
localise(document);
for (const part of [keys, actions, editing, state, feed, search, pages]) part.start();
showTools(document);
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
live.start();
