// The tour of the MCP Inspector's command line, where each command is a client
// of its own. Run by .ci/clients:
//
//   node inspector.mjs MODULES TRANSPORT REVISION HOME URL
//   node inspector.mjs MODULES stdio REVISION HOME COMMAND…
//
// The arguments are those of tour.mjs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text as all } from "node:stream/consumers";
import { edits } from "./files.mjs";
import { eventually, report } from "./report.mjs";

const [modules, transport, revision, home, ...target] = process.argv.slice(2);
const stdio = transport === "stdio";
const inspector = join(modules, "node_modules/@modelcontextprotocol/inspector");
const files = edits(join(home, "tools"));
const log = () => readFileSync(join(home, "log"), "utf8");

// The command line reads what stands behind -- as no option of its own. A
// server that it starts appends to the log, as one that runs does.
const server = stdio
  ? ["sh", "--", "-c", '"$@" 2>>"$0"', join(home, "log"), ...target]
  : ["--transport", transport, "--server-url", target[0]];
const era = ["--protocol-era", revision < "2026" ? "legacy" : "modern"];

function start(method, ...args) {
  const launcher = join(inspector, "clients/launcher/build/index.js");
  const command = [launcher, "--cli", ...args, "--method", method, "--format", "json", "--quiet", "--connect-timeout", "60000", ...era, ...server];
  return spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
}

// run returns the exit status, and what stands in the JSON on both streams.
async function run(method, ...args) {
  const child = start(method, ...args);
  const ended = new Promise((resolve) => child.on("close", resolve));
  const [out, err, status] = await Promise.all([all(child.stdout), all(child.stderr), ended]);
  try {
    return { status, ...(out && JSON.parse(out)), ...(err && JSON.parse(err)) };
  } catch (cause) {
    throw new Error(`${method} printed\n${out}${err}`, { cause });
  }
}

async function good(method, ...args) {
  const { status, result, error } = await run(method, ...args);
  assert.equal(status, 0, `${method}: ${JSON.stringify(error)}`);
  return result;
}

const call = (name, args = {}) => run("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
const text = ({ content }) => content.map((block) => block.text).join("\n");
const names = async () => (await good("tools/list")).tools.map(({ name }) => name);

async function list() {
  const hello = await good("initialize");
  assert.equal(hello.protocolVersion, revision);
  assert.equal(hello.instructions, "Ask for anything.");
  assert.deepEqual(await names(), ["add", "book", "count", "endless"]);
  assert.deepEqual((await good("resources/list")).resources.map(({ uri }) => uri), ["notes://today"]);
  const { resourceTemplates } = await good("resources/templates/list");
  assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ["notes://days/{day}"]);
  assert.deepEqual((await good("prompts/list")).prompts.map(({ name }) => name), ["plan"]);
}

async function calls() {
  const sum = await call("add", { a: 2, b: 3 });
  assert.deepEqual(sum.result?.structuredContent, { sum: 5 }, JSON.stringify(sum));
  fails(await call("add", { a: 2 }), "INVALID_INPUT", /\/b/);
  fails(await call("add", { a: 2, b: 3000 }), "POLICY_DENIED", /^Sums stay small$/);
  assert.equal((await call("vault")).error.code, "tool_not_found");
  const { contents } = await good("resources/read", "--uri", "notes://days/friday");
  assert.equal(contents[0].text, "Nothing on friday");
  const { messages } = await good("prompts/get", "--prompt-name", "plan", "--prompt-args", "day=friday");
  assert.equal(messages[0].content.text, "Plan friday");
}

function fails({ status, result, error }, code, message) {
  assert.equal(status, 5, JSON.stringify(error));
  assert.equal(result._meta["mcpd/error"].code, code);
  assert.match(text(result), message);
}

// cancel is Ctrl-C. A server on stdio lets the call have its grace period.
async function cancel() {
  const child = start("tools/call", "--tool-name", "endless");
  const ended = new Promise((resolve) => child.on("close", resolve));
  await eventually("the script to start", () => log().includes("the script of endless starts"));
  child.kill("SIGINT");
  await ended;
  await eventually("the script to stop", () => log().includes("the script of endless has stopped"));
}

async function reload() {
  files.put("added.1.hcl", "added.hcl");
  await eventually("the new tool", async () => (await names()).includes("added"));
  assert.equal(text((await call("added")).result), "version 1");
  files.put("added.2.hcl", "added.hcl");
  await eventually("the new version", async () => text((await call("added")).result) === "version 2");
  files.put("broken.hcl", "broken.hcl");
  await eventually("word of the mistake", () => log().includes("broken.hcl"));
  assert.equal(text((await call("added")).result), "version 2");
}

// notOffered holds the command line to what is said of it: a step that a later
// version offers is noticed.
async function notOffered() {
  const book = await call("book", { day: "Monday" });
  assert.match(book.result ? text(book.result) : book.error.message, /^the client does not support this/);
  for (const method of ["prompts/complete", "resources/subscribe"]) {
    const { error } = await run(method, "--uri", "notes://today");
    assert.match(error.message, /^Unsupported method/);
  }
}

const { version } = JSON.parse(readFileSync(join(inspector, "package.json"), "utf8"));
const steps = {
  list,
  call: calls,
  progress: "a command asks for no progress, and prints results alone",
  cancel,
  elicit: "a command declares no elicitation",
  complete: "there is no such command",
  subscribe: "there is no such command",
  reload: stdio ? "each command starts a server of its own" : reload,
};
await report({ client: `Inspector CLI ${version}`, transport, revision }, steps, notOffered);
