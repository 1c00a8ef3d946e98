// The two lines of the official TypeScript SDK behind one face: version 1
// speaks the revisions with sessions, version 2 the stateless one too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const info = { name: "mcpd-ci", version: "1.0.0" };
const stateless = "2026-07-28";

const lines = {
  v1: {
    package: "@modelcontextprotocol/sdk",
    revision: "2025-11-25",
    client: "@modelcontextprotocol/sdk/client/index.js",
    http: "@modelcontextprotocol/sdk/client/streamableHttp.js",
    sse: "@modelcontextprotocol/sdk/client/sse.js",
    websocket: "@modelcontextprotocol/sdk/client/websocket.js",
    stdio: "@modelcontextprotocol/sdk/client/stdio.js",
    method: (load, name) => load("@modelcontextprotocol/sdk/types.js")[schemas[name]],
    call: (client, params, options) => client.callTool(params, undefined, options),
  },
  v2: {
    package: "@modelcontextprotocol/client",
    revision: stateless,
    client: "@modelcontextprotocol/client",
    http: "@modelcontextprotocol/client",
    sse: "@modelcontextprotocol/client",
    stdio: "@modelcontextprotocol/client/stdio",
    method: (_, name) => name,
    call: (client, params, options) => client.callTool(params, options),
  },
};

// forgotten is what the SDK says of progress that comes in one piece with the
// result of its call: it knows the call no more.
const forgotten = /^Received a progress notification for an unknown token/;

// schemas names what version 1 wants in the place of a method.
const schemas = {
  "roots/list": "ListRootsRequestSchema",
  "sampling/createMessage": "CreateMessageRequestSchema",
  "elicitation/create": "ElicitRequestSchema",
  "notifications/message": "LoggingMessageNotificationSchema",
  "notifications/resources/updated": "ResourceUpdatedNotificationSchema",
};

const transports = {
  http: "StreamableHTTPClientTransport",
  sse: "SSEClientTransport",
  websocket: "WebSocketClientTransport",
};

// connect returns a Peer: a connected client of one line of the SDK.
//
//   modules    the folder whose node_modules holds the SDK
//   version    "v1" or "v2"
//   server     { url } of a running mcpd, on /mcp, /sse or /ws, or { command, status }
//              to start one: its command line, and the file that its exit status
//              goes to; another server has none, and may have a transport where its URL
//              does not tell it; revision, unless it is the newest that the line speaks;
//              capabilities, where more than forms can be asked
export async function connect(modules, version, server) {
  const load = createRequire(join(modules, "package.json"));
  const peer = new Peer(lines[version], load, server);
  await peer.client.connect(peer.transport);
  peer.listen();
  peer.revision ??= peer.client.getNegotiatedProtocolVersion?.() ?? peer.transport.protocolVersion;
  peer.release = JSON.parse(readFileSync(join(modules, "node_modules", lines[version].package, "package.json"), "utf8")).version;
  return peer;
}

class Peer {
  changes = 0; // notifications that the list of tools has changed
  records = []; // log messages
  updates = []; // URIs of resources that have changed
  messages = []; // all messages of the server, in the order of the wire
  errors = []; // whatever the SDK could not make sense of
  log = ""; // standard error of a server that we started
  answer = () => ({ action: "cancel" }); // what the user says when a tool asks
  sample = () => assert.fail("a model was asked"); // what the model says
  roots = [];
  #line;
  #server;
  #subscription;
  #closing = false;

  constructor(line, load, server) {
    this.#line = line;
    this.#server = server;
    this.expectedRevision = server.revision ?? line.revision;
    const onChanged = () => this.changes++;
    const capabilities = server.capabilities ?? { elicitation: {} };
    this.client = new (load(line.client).Client)(info, {
      capabilities,
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
      ...(this.stateless ? { versionNegotiation: { mode: { pin: stateless } } } : {}),
    });
    const on = (name) => line.method(load, name);
    this.client.setNotificationHandler(on("notifications/message"), ({ params }) => void this.records.push(params));
    this.client.setNotificationHandler(on("notifications/resources/updated"), ({ params }) => void this.updates.push(params.uri));
    this.client.setRequestHandler(on("elicitation/create"), ({ params }) => this.answer(params));
    if (capabilities.sampling) this.client.setRequestHandler(on("sampling/createMessage"), ({ params }) => this.sample(params));
    if (capabilities.roots) this.client.setRequestHandler(on("roots/list"), () => ({ roots: this.roots }));
    this.client.onerror = (error) => this.#closing || forgotten.test(error.message) || this.errors.push(error);
    this.transport = server.url ? this.#dial(load, new URL(server.url)) : this.#start(load);
  }

  get stateless() {
    return this.expectedRevision === stateless;
  }

  // #dial tells by the URL which transport it is for.
  #dial(load, url) {
    const transport = this.#server.transport ?? { "/mcp": "http", "/sse": "sse", "/ws": "websocket" }[url.pathname];
    const dialled = new (load(this.#line[transport])[transports[transport]])(url);
    this.#hear(dialled);
    return dialled;
  }

  // #start runs the server, below a shell that writes its exit status down where that is
  // wanted.
  #start(load) {
    const { StdioClientTransport } = load(this.#line.stdio);
    const { status, command, env } = this.#server;
    const [program, ...args] = status ? ["sh", "-c", '"$@"; echo $? >"$0"', status, ...command] : command;
    const transport = new StdioClientTransport({ command: program, args, env, stderr: "pipe" });
    this.#hear(transport);
    transport.stderr.on("data", (data) => (this.log += data));
    return transport;
  }

  // #hear keeps the revision that the SDK tells its transport.
  #hear(transport) {
    const told = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (revision) => {
      this.revision = revision;
      told?.(revision);
    };
  }

  // listen keeps what the transport receives, also what the SDK forgets.
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
    if (logLevel && this.stateless) params._meta = { "io.modelcontextprotocol/logLevel": logLevel };
    return this.#line.call(this.client, params, others);
  }

  // wantLogs asks for log messages of all calls to come, where a session can.
  async wantLogs(level) {
    if (!this.stateless) await this.client.setLoggingLevel(level);
  }

  async subscribe(uri) {
    if (this.stateless) this.#subscription = await this.client.listen({ resourceSubscriptions: [uri] });
    else await this.client.subscribeResource({ uri });
  }

  async unsubscribe(uri) {
    if (this.stateless) await this.#subscription.close();
    else await this.client.unsubscribeResource({ uri });
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
