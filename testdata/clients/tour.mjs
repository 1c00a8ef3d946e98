// The tour of the official TypeScript SDK: what every client of docs/reference/clients.md
// does against a real mcpd that serves tour.d. Run by .ci/clients:
//
//   node tour.mjs MODULES v1|v2 TRANSPORT REVISION HOME URL
//   node tour.mjs MODULES v1|v2 stdio REVISION HOME COMMAND…
//
// HOME holds tools, the folder that is served, and log, what mcpd says of it.
// The last line is the client's row of the table. TOUR_ASKS names the upstream of which
// mcpd has the tools, where it has none of its own (.ci/federation): it is said to ask.
// TOUR_BESIDE are the words that the names and the URIs of all else begin with that mcpd
// offers there: all of them are to be found.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { edits } from "./files.mjs";
import { eventually, report } from "./report.mjs";
import { connect } from "./sdk.mjs";

const [modules, line, transport, revision, home, ...target] = process.argv.slice(2);
const server = transport === "stdio" ? { command: target, status: join(home, "status") } : { url: target[0] };
const files = edits(join(home, "tools"));
const peer = await connect(modules, line, { ...server, revision });
const log = () => (transport === "stdio" ? peer.log : readFileSync(join(home, "log"), "utf8"));

const asks = process.env.TOUR_ASKS ? `[${process.env.TOUR_ASKS}] ` : "";
const beside = (process.env.TOUR_BESIDE ?? "").split(" ").filter(Boolean);
const text = ({ content }) => content.map((block) => block.text).join("\n");
const names = async () => ours((await peer.list()).map(({ name }) => name));

// ours leaves out what is offered beside what the tour is about.
function ours(offered) {
  for (const name of offered) for (const word of beside) if (name.startsWith(word)) met.add(word);
  return offered.filter((name) => !beside.some((word) => name.startsWith(word)));
}
const met = new Set(); // the words that something began with

function fails(result, code, message) {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result._meta["mcpd/error"].code, code);
  assert.match(text(result), message);
}

async function list() {
  assert.equal(peer.revision, revision);
  assert.deepEqual(await names(), ["add", "book", "count", "endless"]);
  const { resources } = await peer.client.listResources();
  assert.deepEqual(ours(resources.map(({ uri }) => uri)), ["notes://today"]);
  const { resourceTemplates } = await peer.client.listResourceTemplates();
  assert.deepEqual(ours(resourceTemplates.map(({ uriTemplate }) => uriTemplate)), ["notes://days/{day}"]);
  const { prompts } = await peer.client.listPrompts();
  assert.deepEqual(ours(prompts.map(({ name }) => name)), ["plan"]);
  assert.deepEqual(beside.filter((word) => !met.has(word)), [], "nothing begins with these");
}

async function call() {
  assert.deepEqual((await peer.call("add", { a: 2, b: 3 })).structuredContent, { sum: 5 });
  fails(await peer.call("add", { a: 2 }), "INVALID_INPUT", /\/b/);
  fails(await peer.call("add", { a: 2, b: 3000 }), "POLICY_DENIED", /^Sums stay small$/);
  await assert.rejects(peer.call("vault"), { code: -32602 });
  const { contents } = await peer.client.readResource({ uri: "notes://days/friday" });
  assert.equal(contents[0].text, "Nothing on friday");
  const { messages } = await peer.client.getPrompt({ name: "plan", arguments: { day: "friday" } });
  assert.equal(messages[0].content.text, "Plan friday");
}

async function progress() {
  await peer.wantLogs("info");
  peer.messages = [];
  assert.equal(text(await peer.call("count", {}, { onprogress: () => {}, logLevel: "info" })), "counted to three");
  const sent = peer.messages.filter(({ method, result }) => method === "notifications/progress" || result?.content);
  const told = ({ params, result }) => (result ? "result" : `${params.progress}/${params.total} ${params.message}`);
  assert.deepEqual(sent.map(told), ["1/3 at 1", "2/3 at 2", "3/3 at 3", "result"]);
  await eventually("three log messages", () => peer.records.length === 3);
}

async function cancel() {
  const abort = new AbortController();
  const call = peer.call("endless", {}, { signal: abort.signal, timeout: 60_000, onprogress: () => abort.abort("enough") });
  await assert.rejects(call);
  await eventually("the script to stop", () => log().includes("the script of endless has stopped"));
}

async function elicit() {
  let question;
  peer.answer = (asked) => {
    question = asked;
    return { action: "accept", content: { guests: 4 } };
  };
  assert.equal(text(await peer.call("book", { day: "Monday" })), "A table for 4 on Monday");
  assert.equal(question.message, `${asks}How many come on Monday?`);
  assert.deepEqual(question.requestedSchema.required, ["guests"]);
  peer.answer = () => ({ action: "decline" });
  assert.equal(text(await peer.call("book", { day: "Monday" })), "No table on Monday: declined");
}

async function complete() {
  const prompt = { ref: { type: "ref/prompt", name: "plan" }, argument: { name: "day", value: "t" } };
  assert.deepEqual((await peer.client.complete(prompt)).completion.values, ["tuesday"]);
  const template = { ref: { type: "ref/resource", uri: "notes://days/{day}" }, argument: { name: "day", value: "m" } };
  assert.deepEqual((await peer.client.complete(template)).completion.values, ["monday"]);
}

async function subscribe() {
  const { contents: before } = await peer.client.readResource({ uri: "notes://today" });
  assert.equal(before[0].text, "Nothing yet.\n");
  await peer.subscribe("notes://today");
  files.notes("Milk.");
  await eventually("word of the edited notes", () => peer.updates.includes("notes://today"));
  const { contents } = await peer.client.readResource({ uri: "notes://today" });
  assert.equal(contents[0].text, "Milk.\n");
  await peer.unsubscribe("notes://today");
}

async function reload() {
  for (const version of [1, 2]) {
    const before = peer.changes;
    files.put(`added.${version}.hcl`, "added.hcl");
    await eventually("a changed list", () => peer.changes > before);
    assert.deepEqual(await names(), ["add", "added", "book", "count", "endless"]);
    assert.equal(text(await peer.call("added")), `version ${version}`);
  }
  const before = peer.changes;
  files.put("broken.hcl", "broken.hcl");
  await eventually("word of the mistake", () => log().includes("broken.hcl"));
  assert.equal(text(await peer.call("added")), "version 2");
  assert.equal(peer.changes, before);
}

const client = `TypeScript SDK ${peer.release}`;
await report({ client, transport, revision }, { list, call, progress, cancel, elicit, complete, subscribe, reload }, () => peer.close());
