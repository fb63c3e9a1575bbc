"""A whole session through the client: python whole_session.py DIRECTORY SESSION"""

import json
import sys

from claude_mem_client import Connection, Session

directory, session_id = sys.argv[1:]
session = Session(Connection.open(), session_id, directory)
context = session.context()
session.prompt("Make the harbour light blink twice")
session.tool(
    "Edit",
    {"file_path": f"{directory}/light.py", "old_string": "blink(1)", "new_string": "blink(2)"},
    "The file was changed",
)
session.end_turn("The light blinks twice now, because the relay gets two pulses.")
session.end()
print(json.dumps({"context": context, "matches": session.search("blink relay")}))
