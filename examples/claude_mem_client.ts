// A client of claude-mem for editors without hooks. No dependencies: Node 18 or newer.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

type Fields = Record<string, unknown>;

export interface Match {
  id: string;
  title: string | null;
  snippet: string | null;
  strength: "strong" | "weak";
}

/** Where the worker listens, and the token of this installation. */
export class Connection {
  private constructor(
    private readonly address: string,
    private readonly token: string,
  ) {}

  /** Starts the worker if it is not running. */
  static async open(dataDir: string = dataDirectory()): Promise<Connection> {
    await run("claude-mem", ["worker", "start"]);
    const state = JSON.parse(await readFile(join(dataDir, "worker.json"), "utf8"));
    const token = (await readFile(join(dataDir, "token"), "utf8")).trim();
    return new Connection(`http://127.0.0.1:${state.port}`, token);
  }

  async get(path: string, parameters: Record<string, string>): Promise<Response> {
    return this.request(`${path}?${new URLSearchParams(parameters)}`, {});
  }

  async post(path: string, fields: Fields): Promise<Fields> {
    const response = await this.request(path, { method: "POST", body: JSON.stringify(fields) });
    return (await response.json()) as Fields;
  }

  private async request(path: string, options: RequestInit): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(this.address + path, { ...options, headers });
    if (!response.ok) {
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    }
    return response;
  }
}

/** One conversation with an agent. */
export class Session {
  constructor(
    private readonly connection: Connection,
    private readonly id: string,
    private readonly directory: string,
  ) {}

  /** What earlier sessions left for this one: put it before the first message, as it is. */
  async context(): Promise<string> {
    const parameters = { project_dir: this.directory };
    return (await this.connection.get("/api/context/inject", parameters)).text();
  }

  async prompt(text: string): Promise<void> {
    await this.send("init", { prompt: text });
  }

  async tool(name: string, input: unknown, response: unknown): Promise<void> {
    await this.send("observations", {
      tool_name: name,
      tool_input: input,
      tool_response: response,
      timestamp: Date.now(),
    });
  }

  /** The agent has answered; the turn is summarised now. */
  async endTurn(lastMessage: string): Promise<void> {
    await this.send("summarize", { last_assistant_message: lastMessage });
  }

  async end(): Promise<void> {
    await this.send("complete", { reason: "exit" });
  }

  async search(query: string): Promise<Match[]> {
    const response = await this.connection.get("/api/search", { query });
    return ((await response.json()) as { results: Match[] }).results;
  }

  private async send(action: string, fields: Fields): Promise<void> {
    const session = { contentSessionId: this.id, project_dir: this.directory };
    await this.connection.post(`/api/sessions/${action}`, { ...session, ...fields });
  }
}

function dataDirectory(): string {
  return process.env.CLAUDE_MEM_DATA_DIR ?? join(homedir(), ".claude-mem");
}

function run(command: string, parameters: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(command, parameters, (error) => (error ? reject(error) : resolve()));
  });
}
