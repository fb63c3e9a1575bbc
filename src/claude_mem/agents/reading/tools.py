"""Tools of other agents under Claude Code's names, with its arguments and results."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from claude_mem.agents.agent import Normalised, Payload
from claude_mem.agents.reading.fields import Fields, compact, fields_of
from claude_mem.agents.reading.patches import FilePatch, parse_patch
from claude_mem.types import TOOL, TOOL_FAILURE, Json

_NAMES = {
    "Bash": (
        "bash", "shell", "run_shell_command", "exec_command", "shell_command", "local_shell",
        "run_in_terminal", "runinterminal", "run_terminal_cmd", "execute_command", "powershell",
    ),
    "Read": ("read", "read_file", "view", "readfile", "read_many_files"),
    "Write": ("write", "write_file", "create", "create_file", "createfile"),
    "Edit": (
        "edit", "replace", "str_replace", "strreplace", "edit_file", "search_replace",
        "replace_string_in_file", "insert_edit_into_file", "editfiles",
    ),
    "Grep": ("grep", "grep_search", "search_file_content", "rg", "codebase_search"),
    "Glob": ("glob", "file_search", "list_directory", "list_dir", "ls", "list"),
    "WebSearch": ("google_web_search", "web_search", "websearch"),
    "WebFetch": ("web_fetch", "webfetch", "fetch"),
    "Task": ("task", "agent", "runsubagent"),
    "TodoWrite": ("todowrite", "todo_write", "write_todos", "update_plan", "manage_todo_list"),
}  # fmt: skip
_CANONICAL = {alias: name for name, aliases in _NAMES.items() for alias in aliases}
_PATCH_TOOLS = ("apply_patch", "applypatch")
_PATHS = ("file_path", "filePath", "path", "absolute_path", "target_file", "filename")
_EXIT = re.compile(
    r"(?:^|\n)(?:Exit Code: (\d{1,3})|<shellId: \S{1,40} completed with exit code (\d{1,3})>)"
)


def tool_name(name: str) -> str:
    return _CANONICAL.get(name.lower(), name)


def is_patch_tool(name: str) -> bool:
    return name.lower() in _PATCH_TOOLS


def exit_code(output: str) -> int:
    """Reads the exit code that the client wrote into a command's output; 0 where it did not."""
    codes = [int(a or b) for a, b in _EXIT.findall(output[-4000:])]
    return codes[-1] if codes else 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is over, as its client reports it."""

    name: str
    arguments: Json
    output: str
    id: str
    error: str = ""
    code: int | None = None  # of a command; None: its client may have written it into the output
    # Of a client that reports no exit codes, nothing is concluded from a command without an error.
    reports_outcome: bool = True


def event(kind: str, common: Payload, **fields: Json) -> list[Normalised]:
    return [Normalised(kind, {**common, **fields})]


def tool_events(common: Payload, call: ToolCall) -> list[Normalised]:
    """The events of one call; of a patch, one for each file."""
    if is_patch_tool(call.name) and not call.error:
        arguments = call.arguments
        patch = arguments if isinstance(arguments, str) else _patch_text(fields_of(arguments))
        files = parse_patch(patch, Fields(common).text("cwd"))
        if files:
            return [
                Normalised(
                    TOOL, {**common, **_file_edit(file), "tool_use_id": _nth(call.id, number)}
                )
                for number, file in enumerate(files)
            ]
    name, error, output = tool_name(call.name), call.error, call.output
    tool = Fields(
        common, tool_name=name, tool_input=tool_input(name, call.arguments), tool_use_id=call.id
    )
    code = exit_code(output) if call.code is None and name == "Bash" else call.code
    if not error and code:
        error = f"Exit code {code}\n{_EXIT.sub('', output)}".rstrip()
    if error:
        return [Normalised(TOOL_FAILURE, {**tool, "error": error})]
    response = _response(name, tool, output)
    if name == "Bash" and not call.reports_outcome:
        response = {**fields_of(response), "outcome": "unknown"}
    return [Normalised(TOOL, {**tool, "tool_response": response})]


def tool_input(name: str, arguments: Json) -> Json:
    if isinstance(arguments, str):
        return {"command": arguments} if name == "Bash" else {"input": arguments}
    params = fields_of(arguments)
    return params | dict(_renamed(name, params))


def _renamed(name: str, params: Fields) -> Iterator[tuple[str, Json]]:
    if name == "Bash":
        yield "command", _command(params.first("command", "cmd", "script", "command_line"))
    if name in ("Read", "Write", "Edit") and (path := params.first(*_PATHS)) is not None:
        yield "file_path", path
    if name == "Write":
        yield "content", params.first("content", "file_text", "contents")
    if name == "Edit":
        yield "old_string", params.first("old_string", "oldString", "old_str")
        yield "new_string", params.first("new_string", "newString", "new_str")


def _command(command: Json) -> Json:
    """Returns the script of `["bash", "-lc", script]`, the command line of any other list."""
    if not isinstance(command, list):
        return command
    words = [word for word in command if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _response(name: str, tool: Fields, output: str) -> Json:
    if name == "Bash":
        return {"stdout": output, "stderr": "", "interrupted": False}
    if name in ("Write", "Edit"):
        return compact(filePath=tool.inner("tool_input").get("file_path"), text=output)
    return output


def _patch_text(arguments: Fields) -> str:
    return arguments.text("command", "input", "patch", "patchText")


def _file_edit(file: FilePatch) -> Payload:
    kind = "create" if file.is_new else "update"
    if file.is_new:
        arguments: Payload = {"file_path": file.path, "content": file.new}
    else:
        arguments = {"file_path": file.path, "old_string": file.old, "new_string": file.new}
    return {
        "tool_name": "Write" if file.is_new else "Edit",
        "tool_input": arguments,
        "tool_response": {"type": kind, "filePath": file.path},
    }


def _nth(call_id: str, number: int) -> str:
    return f"{call_id}:{number}" if call_id and number else call_id
