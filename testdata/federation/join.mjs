// Code of an agent joins what three servers of others know, in one call: the orders of a
// file, the cities of people in a graph, and sums of a server of the Go SDK. Run by
// .ci/federation, for both eras:
//
//   node join.mjs MODULES v1|v2 REVISION HOME URL
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../clients/sdk.mjs";

const [modules, line, revision, home, url] = process.argv.slice(2);
const orders = join(home, "files", "orders.csv");
writeFileSync(orders, "Ada,12\nGrace,7\nAda,30\nNobody,1\n");
rmSync(join(home, "memory.jsonl"), { force: true });

const program = `
import { anything } from "somewhere";
const { content } = await files.read_text_file({ path: ${JSON.stringify(orders)} });
const rows = content.trim().split("\\n").map((row) => row.split(","));
const people = [...new Set(rows.map(([person]) => person))];
await create_entities({ entities: [["Ada", "London"], ["Grace", "New York"]].map(([name, city]) =>
  ({ name, entityType: "person", observations: [city] })) });
const { entities } = await memory.open_nodes({ names: people });
print(people.length + " people, " + entities.length + " known");
async function total(person) {
  let all = 0;
  for (const [who, amount] of rows)
    if (who === person) all = (await lab.sum({ a: all, b: Number(amount) })).sum;
  return all;
}
const totals = await parallel(entities.map(({ name }) => () => total(name)));
let refused;
try {
  await lab.sum({ a: 2000, b: 1 });
} catch (error) {
  refused = [error.code, error.message];
}
return { joined: entities.map(({ name, observations: [city] }, i) => ({ name, city, total: totals[i] })), refused };
`;

const peer = await connect(modules, line, { url, revision, capabilities: { elicitation: { form: {} } } });
const made = await peer.call("run_code", { code: program });
assert.ok(!made.isError, JSON.stringify(made));
const { result, stdout, calls, notes } = made.structuredContent;
assert.deepEqual(result, {
  joined: [{ name: "Ada", city: "London", total: 42 }, { name: "Grace", city: "New York", total: 7 }],
  refused: ["POLICY_DENIED", "Sums stay small"],
});
assert.equal(stdout, "3 people, 2 known\n");
assert.deepEqual(calls.slice(0, 3).map(({ tool }) => tool), ["files_read_text_file", "memory_create_entities", "memory_open_nodes"]);
assert.deepEqual(calls.slice(3).map(({ tool, outcome }) => `${tool} ${outcome}`).sort(), ["lab_sum POLICY_DENIED", "lab_sum ok", "lab_sum ok", "lab_sum ok"]);
assert.match(notes.join("\n"), /import/);

// A plan reads, and writes nothing.
rmSync(join(home, "memory.jsonl"), { force: true });
const planned = await peer.call("run_code", { mode: "plan", code: `await create_entities({ entities: [{ name: "Eve", entityType: "person", observations: [] }] }); return (await memory.search_nodes({ query: "Eve" })).entities` });
assert.deepEqual(planned.structuredContent.result, []);
assert.deepEqual(planned.structuredContent.calls.map(({ tool, outcome }) => `${tool} ${outcome}`), ["memory_create_entities planned", "memory_search_nodes ok"]);
await peer.close();
console.log(`${line}, ${revision}: code has joined what three servers know, in ${calls.length} calls`);
