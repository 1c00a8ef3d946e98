// One server is killed in the midst of its calls: its tools vanish and come back, and the
// others never fail. Run by .ci/federation:
//
//   node outage.mjs MODULES HOME URL
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../clients/report.mjs";
import { connect } from "../clients/sdk.mjs";

const [modules, home, url] = process.argv.slice(2);
const peer = await connect(modules, "v1", { url });
const pid = () => Number(readFileSync(join(home, "pid"), "utf8"));
const names = async () => (await peer.list()).map(({ name }) => name);
const itsOwn = (name) => name.startsWith("everything_");
const calls = {
  "web_echo": { message: "still here" },
  "files_list_allowed_directories": {},
  "memory_search_nodes": { query: "anybody" },
  "lab_sum": { a: 1, b: 2 },
  "old_sum": { a: 1, b: 2 },
};

const before = await names();
const others = before.filter((name) => !itsOwn(name));
assert.ok(before.some(itsOwn));

// Everybody else is called all the time.
let over = false;
const made = {};
const busy = Object.entries(calls).map(async ([tool, args]) => {
  for (made[tool] = 0; !over; made[tool]++) {
    const result = await peer.call(tool, args);
    assert.ok(!result.isError, `${tool}: ${JSON.stringify(result)}`);
  }
});
const failed = Promise.all(busy);
failed.catch(() => (over = true));

// listed returns the tools of the server, and wants those of all others to be there.
async function listed() {
  const now = await names();
  assert.deepEqual(now.filter((name) => !itsOwn(name)), others);
  return now.filter(itsOwn);
}

const changes = peer.changes;
let begun = false;
const long = { onprogress: () => (begun = true), timeout: 60_000 };
const underway = peer.call("everything_trigger-long-running-operation", { duration: 30, steps: 300 }, long);
await eventually("the call to run", () => begun);
const victim = pid();
process.kill(victim, "SIGKILL");

const lost = await underway;
assert.equal(lost.isError, true);
assert.equal(lost._meta["mcpd/error"].code, "EXECUTION_ERROR");
await eventually("its tools to vanish", async () => (await listed()).length === 0);
await assert.rejects(peer.call("everything_echo", { message: "hello?" }), { code: -32602 });
await eventually("its tools to come back", async () => (await listed()).length === before.length - others.length);
assert.notEqual(pid(), victim);
const { content } = await peer.call("everything_echo", { message: "hello?" });
assert.equal(content[0].text, "Echo: hello?");
assert.ok(peer.changes >= changes + 2, "the client was told of both");

over = true;
await failed;
for (const [tool, n] of Object.entries(made)) assert.ok(n > 0, `${tool} was called ${n} times`);
await peer.close();
console.log(`outage: everything came back, and ${Object.values(made).reduce((a, b) => a + b)} calls of others went on`);
