// The official TypeScript SDK against a real mcpd, while tool files are edited
// underneath. Run by .ci/clients:
//
//   node client.mjs MODULES v1|v2 TOOLS URL                    to a server that runs
//   node client.mjs MODULES v1|v2 TOOLS STATUS_FILE COMMAND…   to one that it starts
//
// Whatever is not exactly as expected ends it with a status other than 0.
import assert from "node:assert/strict";
import { calls } from "./calls.mjs";
import { broken, endless, folder, talkative, versioned } from "./files.mjs";
import { eventually } from "./report.mjs";
import { connect } from "./sdk.mjs";

const [modules, version, tools, where, ...command] = process.argv.slice(2);
const overHTTP = command.length === 0;
const files = folder(tools);
const peer = await connect(modules, version, overHTTP ? { url: where } : { command, status: where });

// afterChange does something to the files and waits until the client is told.
async function afterChange(edit) {
  const before = peer.changes;
  edit();
  await eventually("a changed list of tools", () => peer.changes > before);
}

const named = async (name) => (await peer.list()).find((tool) => tool.name === name);

async function isVersion(name, version) {
  const tool = await named(name);
  assert.match(tool?.description ?? "", new RegExp(`version ${version}\\.$`));
  assert.deepEqual((await peer.call(name)).structuredContent, { version });
}

const failsWith = (result, code, message) => {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result._meta["mcpd/error"].code, code);
  assert.match(result.content[0].text, message);
};

async function theServerSaysWhatItIs() {
  assert.equal(peer.revision, peer.expectedRevision);
  const { name, version } = peer.client.getServerVersion();
  assert.deepEqual({ name, version }, { name: "mcpd-clients", version: "1.2.3" });
  assert.equal(peer.client.getServerCapabilities().tools.listChanged, true);
  assert.equal(peer.client.getInstructions(), "Ask for anything.");
}

async function everyShippedToolIsListedAndAnswers() {
  const list = await peer.list();
  assert.deepEqual(list.map(({ name }) => name), Object.keys(calls), "calls.mjs has a call of each shipped tool, in order");
  for (const tool of list) {
    assert.ok(tool.description, tool.name);
    assert.equal(tool.inputSchema.type, "object", tool.name);
    const [args, want] = calls[tool.name];
    const { isError, structuredContent, content } = await peer.call(tool.name, args);
    assert.ok(!isError, `${tool.name}: ${JSON.stringify(content)}`);
    if (typeof want === "function") want(structuredContent);
    else assert.deepEqual(structuredContent, want, tool.name);
  }
}

async function mistakesAreAnswered() {
  failsWith(await peer.call("add", { a: 2, c: 3 }), "INVALID_INPUT", /\/b|"b"/);
  failsWith(await peer.call("get_customer", { customer_id: "C-1042", environment: "prod" }), "POLICY_DENIED", /^Blocked in prod$/);
  failsWith(await peer.call("multiply", { a: 1e200, b: 1e200 }), "EXECUTION_ERROR", /^the product is too large for a number$/);
  await assert.rejects(peer.call("ad", {}), { code: -32602 });
}

// Calls run all the while. None fails, and none sees an older version than one before it.
async function callsGoOnWhileTheirToolIsEdited() {
  await afterChange(() => files.write("live.hcl", versioned("live", 1)));
  await isVersion("live", 1);
  let done = false;
  let newest = 1;
  let count = 0;
  const callers = [1, 2, 3].map(async () => {
    for (let seen = 1; !done; count++) {
      const { isError, structuredContent, content } = await peer.call("live");
      assert.ok(!isError, JSON.stringify(content));
      assert.ok(structuredContent.version >= seen && structuredContent.version <= newest, `${structuredContent.version} after ${seen}`);
      seen = structuredContent.version;
    }
  });
  const editor = (async () => {
    for (let version = 2; version <= 20; version++) {
      newest = version;
      await afterChange(() => files.save("live.hcl", versioned("live", version)));
      await isVersion("live", version);
    }
  })().finally(() => (done = true));
  await Promise.all([editor, ...callers]);
  assert.ok(count >= 20, `only ${count} calls went on`);
}

async function aBrokenFileChangesNothing() {
  const before = peer.changes;
  files.write("broken.hcl", broken);
  await eventually("a word about broken.hcl", async () => {
    const said = overHTTP ? await (await fetch(new URL("/readyz", where.replace("ws:", "http:")))).text() : peer.log;
    return said.includes("broken.hcl");
  });
  files.save("live.hcl", versioned("live", 21));
  for (let call = 0; call < 50; call++) await isVersion("live", 20);
  assert.equal(await named("broken"), undefined);
  assert.equal(peer.changes, before);
  await afterChange(() => files.remove("broken.hcl"));
  await isVersion("live", 21);
}

async function aRenamedToolIsGoneAndItsSuccessorThere() {
  await afterChange(() => files.save("live.hcl", versioned("successor", 1)));
  await isVersion("successor", 1);
  assert.equal(await named("live"), undefined);
  await assert.rejects(peer.call("live"), { code: -32602 });
  await afterChange(() => files.save("below/deep/more.hcl", versioned("more", 1)));
  await isVersion("more", 1);
  await afterChange(() => files.remove("live.hcl"));
  assert.equal(await named("successor"), undefined);
}

async function progressAndLogsComeBeforeTheResult() {
  await afterChange(() => files.save("talkative.hcl", talkative));
  await peer.wantLogs("info");
  peer.messages = [];
  let steps = 0;
  const { content } = await peer.call("talkative", {}, { onprogress: () => steps++, logLevel: "info" });
  assert.deepEqual(content, [{ type: "text", text: "done" }]);
  assert.ok(steps >= 1 && steps <= 3, `${steps} steps`);
  await eventually("three log messages", () => peer.records.length === 3);
  for (const { level } of peer.records) assert.equal(level, "info");
  const sent = peer.messages.filter(({ method, result }) => method === "notifications/progress" || result?.content);
  assert.deepEqual(
    sent.map(({ params, result }) => (result ? "result" : `${params.progress}/${params.total} ${params.message}`)),
    ["1/3 step 1", "2/3 step 2", "3/3 step 3", "result"],
  );
}

// Four endless calls leave no room for a fifth until they are cancelled.
async function cancelledCallsStop() {
  await afterChange(() => files.save("endless.hcl", endless));
  const abort = new AbortController();
  let running = 0;
  const options = { signal: abort.signal, timeout: 60_000, onprogress: () => running++ };
  const cancelled = [1, 2, 3, 4].map(() => assert.rejects(peer.call("endless", {}, options)));
  await eventually("four calls to run", () => running === 4);
  failsWith(await peer.call("add", { a: 2, b: 3 }), "EXECUTION_ERROR", /./);
  abort.abort("enough");
  await Promise.all(cancelled);
  await eventually("room for a call", async () => !(await peer.call("add", { a: 2, b: 3 })).isError);
}

await theServerSaysWhatItIs();
await everyShippedToolIsListedAndAnswers();
await mistakesAreAnswered();
await callsGoOnWhileTheirToolIsEdited();
await aBrokenFileChangesNothing();
await aRenamedToolIsGoneAndItsSuccessorThere();
await progressAndLogsComeBeforeTheResult();
await cancelledCallsStop();
await peer.close();
console.log(`TypeScript SDK ${version} over ${overHTTP ? new URL(where).pathname : "stdio"}, ${peer.revision}: ${Object.keys(calls).length} tools, ${peer.changes} changes`);
