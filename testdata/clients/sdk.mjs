// The two lines of the official TypeScript SDK behind one face: version 1
// speaks the revisions with sessions, version 2 the stateless one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const info = { name: "mcpd-ci", version: "1.0.0" };

const lines = {
  v1: {
    revision: "2025-11-25",
    client: "@modelcontextprotocol/sdk/client/index.js",
    http: "@modelcontextprotocol/sdk/client/streamableHttp.js",
    sse: "@modelcontextprotocol/sdk/client/sse.js",
    websocket: "@modelcontextprotocol/sdk/client/websocket.js",
    stdio: "@modelcontextprotocol/sdk/client/stdio.js",
    logging: (load) => load("@modelcontextprotocol/sdk/types.js").LoggingMessageNotificationSchema,
    call: (client, params, options) => client.callTool(params, undefined, options),
    options: {},
  },
  v2: {
    revision: "2026-07-28",
    client: "@modelcontextprotocol/client",
    http: "@modelcontextprotocol/client",
    stdio: "@modelcontextprotocol/client/stdio",
    logging: () => "notifications/message",
    call: (client, params, options) => client.callTool(params, options),
    options: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  },
};

// connect returns a Peer: a connected client of one line of the SDK.
//
//   modules    the folder whose node_modules holds the SDK
//   version    "v1" or "v2"
//   server     { url } of a running mcpd, on /mcp, /sse or /ws, or { command, status } to start one:
//              its command line, and the file that its exit status goes to
export async function connect(modules, version, server) {
  const load = createRequire(join(modules, "package.json"));
  const peer = new Peer(lines[version], load, server);
  await peer.client.connect(peer.transport);
  peer.listen();
  peer.revision ??= peer.client.getNegotiatedProtocolVersion?.() ?? peer.transport.protocolVersion;
  return peer;
}

class Peer {
  changes = 0; // notifications that the list of tools has changed
  records = []; // log messages
  messages = []; // all messages of the server, in the order of the wire
  errors = []; // whatever the SDK could not make sense of
  log = ""; // standard error of a server that we started
  #line;
  #server;
  #closing = false;

  constructor(line, load, server) {
    this.#line = line;
    this.#server = server;
    const onChanged = () => this.changes++;
    this.client = new (load(line.client).Client)(info, {
      ...line.options,
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
    });
    this.client.setNotificationHandler(line.logging(load), ({ params }) => void this.records.push(params));
    this.client.onerror = (error) => this.#closing || this.errors.push(error);
    this.transport = server.url ? this.#dial(load, new URL(server.url)) : this.#start(load);
    this.expectedRevision = line.revision;
  }

  // #dial tells by the URL which transport it is for.
  #dial(load, url) {
    if (url.pathname === "/mcp") return new (load(this.#line.http).StreamableHTTPClientTransport)(url);
    const transport =
      url.protocol === "ws:" ? new (load(this.#line.websocket).WebSocketClientTransport)(url) : new (load(this.#line.sse).SSEClientTransport)(url);
    transport.setProtocolVersion = (revision) => (this.revision = revision);
    return transport;
  }

  // #start runs the server below a shell that writes its exit status down.
  #start(load) {
    const { StdioClientTransport } = load(this.#line.stdio);
    const transport = new StdioClientTransport({
      command: "sh",
      args: ["-c", '"$@"; echo $? >"$0"', this.#server.status, ...this.#server.command],
      stderr: "pipe",
    });
    transport.setProtocolVersion = (revision) => (this.revision = revision);
    transport.stderr.on("data", (data) => (this.log += data));
    return transport;
  }

  // listen keeps what the transport receives. Version 1 of the SDK forgets the
  // progress of a call whose result arrives in the same chunk.
  listen() {
    const { onmessage } = this.transport;
    this.transport.onmessage = (message, extra) => {
      this.messages.push(message);
      onmessage(message, extra);
    };
  }

  async list() {
    const { tools } = await this.client.listTools(undefined, { cacheMode: "refresh" });
    return tools;
  }

  call(name, args = {}, options = {}) {
    const { logLevel, ...others } = options;
    const params = { name, arguments: args };
    if (logLevel && this.#line.revision >= "2026") params._meta = { "io.modelcontextprotocol/logLevel": logLevel };
    return this.#line.call(this.client, params, others);
  }

  // wantLogs asks for log messages of all calls to come, where a session can.
  async wantLogs(level) {
    if (this.#line.revision < "2026") await this.client.setLoggingLevel(level);
  }

  // close ends the connection, and the server if it is ours: by itself, with
  // status 0, as soon as its input ends.
  async close() {
    assert.deepEqual(this.errors, []);
    this.#closing = true;
    await this.transport.terminateSession?.();
    await this.client.close();
    if (this.#server.status) assert.equal(readFileSync(this.#server.status, "utf8"), "0\n", `exit status of mcpd; its log:\n${this.log}`);
  }
}
