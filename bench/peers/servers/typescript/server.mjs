// Serves the tools with the TypeScript SDK, as its documentation shows. Tuned for speed:
// JSON responses instead of event streams, stateless HTTP where the client needs no
// session, schemas that all requests share, and no log. The SDK 2 makes a server for
// each stateless request. HTTP+SSE is part of the SDK 1 only.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer as McpServer1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const { values: flags } = parseArgs({
  options: {
    transport: { type: "string", default: "http" },
    sessions: { type: "boolean", default: false },
    modern: { type: "boolean", default: false },
    tools: { type: "string", default: "10" },
  },
});
const count = Number(flags.tools);

const shape = { a: z.number(), b: z.number() };
const resultShape = { sum: z.number() };
const input = z.object(shape);
const output = z.object(resultShape);
const empty = z.object({});

function add({ a, b }) {
  const result = { sum: a + b };
  return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
}

function blob() {
  return { content: [{ type: "text", text: "a row of some table\n".repeat(5000) }] };
}

// addTools registers the tools with a server of either version of the SDK.
function addTools(server, inputSchema, outputSchema, noInput) {
  server.registerTool("add", { description: "Adds two numbers and returns their sum.", inputSchema, outputSchema }, add);
  server.registerTool("blob", { description: "Returns a text of 100,000 bytes.", inputSchema: noInput }, blob);
  for (let i = 2; i < count; i++) {
    const name = "tool_" + String(i).padStart(5, "0");
    server.registerTool(name, { description: "Adds two numbers, as one of many tools in a list.", inputSchema, outputSchema }, add);
  }
  return server;
}

const newServer = () => addTools(new McpServer({ name: "typescript", version: "1" }), input, output, empty);

function listen(handler) {
  const server = createServer(handler);
  server.keepAliveTimeout = 0; // the clients keep their connections while others are measured
  server.listen(0, "127.0.0.1", () => console.error(`listening on http://127.0.0.1:${server.address().port}/`));
}

// withSessions serves Streamable HTTP with one server for each session.
function withSessions() {
  const sessions = new Map();
  listen(async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: true,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await newServer().connect(transport);
    }
    await transport.handleRequest(req, res);
  });
}

// stateless serves Streamable HTTP of 2025-11-25 with one server for each request.
function stateless() {
  listen(async (req, res) => {
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await newServer().connect(transport);
    await transport.handleRequest(req, res);
  });
}

// events serves HTTP+SSE with one server for each connection.
function events() {
  const sessions = new Map();
  listen(async (req, res) => {
    if (req.method === "GET") {
      const transport = new SSEServerTransport("/messages", res);
      sessions.set(transport.sessionId, transport);
      res.on("close", () => sessions.delete(transport.sessionId));
      await addTools(new McpServer1({ name: "typescript", version: "1" }), shape, resultShape, {}).connect(transport);
      return;
    }
    const id = new URL(req.url, "http://localhost").searchParams.get("sessionId");
    await sessions.get(id).handlePostMessage(req, res);
  });
}

if (flags.transport === "stdio") serveStdio(newServer);
else if (flags.transport === "sse") events();
else if (flags.sessions) withSessions();
else if (flags.modern) listen(toNodeHandler(createMcpHandler(newServer, { responseMode: "json" })));
else stateless();
