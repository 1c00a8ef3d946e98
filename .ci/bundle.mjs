// Starts the server of an unpacked MCP bundle as a desktop client does, and calls a tool.
//
//   node bundle.mjs BUNDLE_FOLDER TOOL_FOLDER
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [bundle, tools] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(bundle, "manifest.json"), "utf8"));
const variables = { __dirname: bundle, "user_config.tools": tools };
const expand = (text) => text.replace(/\$\{([^}]*)\}/g, (_, name) => variables[name] ?? `unknown variable ${name}`);
const { command, args } = manifest.server.mcp_config;

const messages = [
  { id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bundle", version: "1" } } },
  { method: "notifications/initialized" },
  { id: 2, method: "tools/call", params: { name: "hello", arguments: { name: "Ada" } } },
];
const input = messages.map((m) => JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n").join("");
const { stdout, stderr, status } = spawnSync(expand(command), args.map(expand), { input, encoding: "utf8", timeout: 60000 });
if (status !== 0 || !stdout.includes("Hello, Ada!")) {
  console.error(`status ${status}\n${stdout}\n${stderr}`);
  process.exit(1);
}
console.log(`${manifest.name} ${manifest.version} answers`);
