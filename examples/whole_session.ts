// A whole session through the client: node whole_session.js DIRECTORY SESSION

import { Connection, Session } from "./claude_mem_client.js";

const [directory, id] = process.argv.slice(2);
const session = new Session(await Connection.open(), id, directory);
const context = await session.context();
await session.prompt("Make the harbour light blink twice");
await session.tool(
  "Edit",
  { file_path: `${directory}/light.py`, old_string: "blink(1)", new_string: "blink(2)" },
  "The file was changed",
);
await session.endTurn("The light blinks twice now, because the relay gets two pulses.");
await session.end();
console.log(JSON.stringify({ context, matches: await session.search("blink relay") }));
