// claude-mem: forwards the events of OpenCode to the launcher, and gives it memories of the project.
// Written by claude-mem; every install and upgrade replaces it.
// Nothing in here may throw: an error in chat.message would end the user's run.
import { spawnSync } from "node:child_process"

const launcher = "LAUNCHER"

function run(kind, payload) {
  try {
    const done = spawnSync(launcher, ["opencode", kind], {
      input: JSON.stringify({ ...payload, timestamp: Date.now() }),
      cwd: payload.directory,
      env: { ...process.env, CLAUDE_PROJECT_DIR: payload.directory },
      timeout: 30000,
      stdio: ["pipe", "pipe", "ignore"],
    })
    return JSON.parse(done.stdout.toString() || "{}").additionalContext
  } catch {
    return undefined
  }
}

function guarded(handler) {
  return async (...values) => {
    try {
      await handler(...values)
    } catch {
      // a memory that is missing must not disturb the session
    }
  }
}

export const ClaudeMem = async ({ directory }) => {
  const created = new Set() // sessions of this process
  const started = new Set()
  const parents = new Map() // of sessions of subagents
  const turns = new Map() // session: { message, text }, until it is idle

  const head = (id) => {
    const root = parents.get(id) ?? id
    const agent = root === id ? {} : { agent_id: id }
    return { session_id: root, directory, message_id: turns.get(root)?.message, ...agent }
  }

  const end = (id) => {
    const turn = turns.get(id)
    if (turn && !turn.ended) {
      turn.ended = true
      run("Stop", { ...head(id), last_text: turn.text })
    }
  }

  const prompt = (input, output) => {
    const id = input.sessionID
    if (parents.has(id)) return
    const texts = []
    if (!started.has(id)) {
      started.add(id)
      texts.push(run("SessionStart", { ...head(id), source: created.has(id) ? "startup" : "resume" }))
    }
    turns.set(id, { message: output.message.id, text: "" })
    const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
    texts.push(run("UserPromptSubmit", { ...head(id), parts: parts.map(({ type, text }) => ({ type, text })) }))
    const text = texts.filter(Boolean).join("\n\n")
    if (!text) return
    const part = "prt_" + Date.now().toString(16).padStart(12, "0") + "claudemem00001"
    output.parts.push({ id: part, sessionID: id, messageID: output.message.id, type: "text", text, synthetic: true })
  }

  const handlers = {
    "session.created": ({ info }) => {
      if (info.parentID) parents.set(info.id, parents.get(info.parentID) ?? info.parentID)
      else created.add(info.id)
    },
    "message.part.updated": ({ part }) => {
      // tool.execute.after does not run for a tool that failed
      if (part.type !== "tool" || part.state.status !== "error") return
      run("PostToolUseFailure", { ...head(part.sessionID), tool: part.tool, call_id: part.callID, state: part.state })
    },
    "session.idle": ({ sessionID }) => {
      if (!parents.has(sessionID)) end(sessionID)
    },
  }

  return {
    "chat.message": guarded(prompt),
    "tool.execute.after": guarded((input, output) => {
      const state = { input: input.args, output: output.output, metadata: { exit: output.metadata?.exit } }
      run("PostToolUse", { ...head(input.sessionID), tool: input.tool, call_id: input.callID, state })
    }),
    "experimental.text.complete": guarded((input, output) => {
      const turn = turns.get(input.sessionID)
      if (!turn || !output.text) return
      turn.text = output.text
      run("Statement", { ...head(input.sessionID), statement: output.text, part_id: input.partID })
    }),
    event: guarded(({ event }) => handlers[event.type]?.(event.properties)),
    // Handlers of events are not awaited when OpenCode exits, this is.
    dispose: guarded(() => {
      for (const id of started) {
        end(id)
        run("SessionEnd", head(id))
      }
    }),
  }
}
