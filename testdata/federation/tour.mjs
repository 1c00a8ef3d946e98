// The tour of the official TypeScript SDK through the federation: it lists what each
// server offers and makes the requests of requests.json, of the server itself and through
// mcpd, and wants the same of both. Run by .ci/federation:
//
//   node tour.mjs MODULES v1|v2 REVISION HOME URL WEB LAB
//
// HOME is the folder that mcpd.hcl names. The last line is how much was compared.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../clients/sdk.mjs";
import { eventually } from "../clients/report.mjs";
import { compare, listed } from "./compare.mjs";

const [modules, line, revision, home, url, web, lab] = process.argv.slice(2);
const stateless = "2026-07-28";
const files = join(home, "files");
const requests = JSON.parse(readFileSync(new URL("requests.json", import.meta.url), "utf8").replaceAll("$FILES", files));

const reference = (name, ...args) => ({
  command: [join(modules, "node_modules/node/bin/node"), join(modules, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
  env: { ...process.env, MEMORY_FILE_PATH: join(home, "direct.jsonl") },
  revision: "2025-11-25",
});
const forms = { elicitation: { form: {}, url: {} }, sampling: {} };
const everyone = { ...forms, roots: {} };

// The servers as they are to be had without mcpd, and what mcpd.hcl says of each.
const servers = {
  everything: { at: { ...reference("everything", "stdio"), capabilities: everyone }, exclude: ["get-env"] },
  web: { at: { url: `${web}/mcp`, revision: "2025-11-25", capabilities: forms }, exclude: ["get-env"], unread: true },
  files: { at: reference("filesystem", files), exclude: ["read_file"] },
  memory: { at: reference("memory"), rename: { read_graph: "graph" } },
  lab: { at: { url: revision === stateless ? `${lab}/modern` : `${lab}/sessions`, transport: "http", revision } },
  old: { at: { url: `${lab}/sessions`, transport: "http", revision: "2025-11-25" }, unread: true },
};

// wiped has both begin with nothing.
function wiped() {
  for (const name of readdirSync(files)) rmSync(join(files, name), { recursive: true });
  for (const name of ["direct.jsonl", "memory.jsonl"]) rmSync(join(home, name), { force: true });
}

const through = await connect(modules, line, { url, revision, capabilities: everyone });
through.roots = [{ uri: "file:///home/ada", name: "home" }];
assert.equal(through.revision, revision);
const offered = await listed(through);
let compared = 0;
for (const [name, { at, exclude = [], rename = {}, unread }] of Object.entries(servers)) {
  const direct = await connect(modules, line, at);
  direct.roots = through.roots;
  const names = { here: (itself) => rename[itself] ?? `${name}_${itself}`, skips: (itself) => exclude.includes(itself) };
  compared += await compare({ name, direct, through, offered, names, unread, wiped, requests: requests.filter(({ server }) => server === name) });
  await direct.close();
}

// What a server says in the midst of a call reaches its caller.
await through.wantLogs("debug");
through.records = [];
// Every other time it begins to, at a level of chance that may be below what it is asked for.
await eventually("a log message", async () => {
  await through.call("everything_toggle-simulated-logging", {}, { logLevel: "debug" });
  return through.records.length > 0;
});

// A subscription to what a server offers is one at that server.
const graph = "memory://knowledge-graph";
let written = 0;
const write = () => through.call("memory_create_entities", { entities: [{ name: `note ${++written}`, entityType: "note", observations: [] }] });
await through.subscribe(graph);
await eventually("word of the graph", async () => {
  assert.ok(!(await write()).isError);
  return through.updates.includes(graph);
});
await through.unsubscribe(graph);
await through.close();
console.log(`${line}, ${revision}: ${compared} compared, 0 differ`);
