// What a client gets of a server, and what it gets of it through mcpd.
import assert from "node:assert/strict";

// listed reads all pages of all lists.
export async function listed({ client }) {
  const can = client.getServerCapabilities();
  const all = async (list, member) => {
    const entries = [];
    for (let cursor; ; ) {
      const page = await list(cursor && { cursor }, { cacheMode: "refresh" });
      entries.push(...page[member]);
      if (!(cursor = page.nextCursor)) return entries;
    }
  };
  return {
    tools: can.tools ? await all(client.listTools.bind(client), "tools") : [],
    prompts: can.prompts ? await all(client.listPrompts.bind(client), "prompts") : [],
    resources: can.resources ? await all(client.listResources.bind(client), "resources") : [],
    templates: can.resources ? await all(client.listResourceTemplates.bind(client), "resourceTemplates") : [],
  };
}

// compare wants the same of both, and returns how much of it there was.
export async function compare({ name, direct, through, offered, names, unread, wiped, requests }) {
  const here = await listed(direct);
  compareLists(name, here, offered, names, unread);
  const both = requests.filter(({ denied, invalid }) => !denied && !invalid);
  wiped();
  const wanted = [];
  for (const request of both) wanted.push(await made(direct, request, (itself) => itself));
  wiped();
  for (const request of requests) {
    const got = await made(through, request, names.here);
    if (request.denied || request.invalid) refused(request, got);
    else same(request, got, wanted[both.indexOf(request)]);
  }
  return requests.length + Object.values(here).flat().length;
}

// listing leaves aside what has no part in the comparison: what is the server's own, and
// the title that mcpd repeats for clients of revisions before 2025-06-18. What
// says nothing of arguments has none, and is not idempotent.
function listing({ _meta, execution, icons, ...entry }) {
  const { title, ...annotations } = entry.annotations ?? {};
  return { arguments: [], ...entry, annotations: { idempotentHint: false, ...annotations } };
}

function compareLists(name, here, offered, { here: renamed, skips }, unread) {
  const needsTask = ({ execution }) => execution?.taskSupport === "required";
  for (const kind of ["tools", "prompts"]) {
    const wanted = here[kind].filter((entry) => !skips(entry.name) && !needsTask(entry)).map((entry) => ({ ...listing(entry), name: renamed(entry.name) }));
    for (const entry of wanted) {
      const got = offered[kind].find(({ name }) => name === entry.name);
      assert.ok(got, `${entry.name} is not offered`);
      if (name === "web" && entry.name === "web_echo") entry.description = "Says it again";
      assert.deepEqual(listing(got), entry);
    }
    const known = new Set(wanted.map((entry) => entry.name));
    const more = offered[kind].filter((entry) => entry.name.startsWith(`${name}_`) && !known.has(entry.name));
    assert.deepEqual(more, []);
  }
  if (unread) return;
  for (const kind of ["resources", "templates"])
    for (const entry of here[kind].map(listing)) {
      const address = kind === "resources" ? "uri" : "uriTemplate";
      assert.deepEqual(listing(offered[kind].find((other) => other[address] === entry[address]) ?? {}), entry);
    }
}

// made makes a request, and returns all that comes of it.
async function made(peer, request, renamed) {
  const came = { asked: [], sampled: [], progress: [] };
  const answers = [...(request.answers ?? [])];
  peer.answer = (params) => {
    came.asked.push(params);
    return answers.shift() ?? { action: "cancel" };
  };
  peer.sample = (params) => {
    came.sampled.push(params);
    return { role: "assistant", model: "none", content: { type: "text", text: "a thought" }, stopReason: "endTurn" };
  };
  try {
    const { _meta, resultType, ttlMs, cacheScope, ...result } = await sent(peer, request, renamed, came);
    if (result.completion) result.completion.hasMore ??= false;
    return { ...came, result, code: _meta?.["mcpd/error"]?.code };
  } catch (error) {
    return { ...came, error };
  }
}

function sent(peer, { tool, as, prompt, read, complete, argument, value, context, arguments: args, progress }, renamed, came) {
  if (tool) {
    const onprogress = progress && (({ progress, total, message }) => came.progress.push([`${progress}/${total}`, message].filter(Boolean).join(" ")));
    return peer.call(renamed(tool), args ?? {}, onprogress ? { onprogress } : {});
  }
  if (prompt) return peer.client.getPrompt({ name: renamed(prompt), ...(args && { arguments: args }) });
  if (read) return peer.client.readResource({ uri: read });
  const ref = complete.prompt ? { type: "ref/prompt", name: renamed(complete.prompt) } : { type: "ref/resource", uri: complete.template };
  return peer.client.complete({ ref, argument: { name: argument, value }, ...(context && { context: { arguments: context } }) });
}

const text = ({ content = [] }) => content.map((block) => block.text ?? "").join("\n");

function refused({ denied, invalid, tool }, { result, code, error }) {
  assert.ifError(error);
  assert.equal(result.isError, true, `${tool} is not refused`);
  assert.equal(code, denied ? "POLICY_DENIED" : "INVALID_INPUT", tool);
  if (denied) assert.equal(text(result), denied);
  else assert.ok(text(result).includes(invalid), text(result));
}

// same wants what came through mcpd to be what came without it.
function same(request, got, wanted) {
  const what = JSON.stringify(request);
  if (wanted.error) {
    assert.ok(got.error, `${what}: through mcpd ${JSON.stringify(got)}, and of the server ${wanted.error}`);
    assert.ok(Number.isInteger(got.error.code), what);
    return;
  }
  assert.ifError(got.error);
  assert.deepEqual(got.progress, request.progress ?? [], what);
  compareQuestions(request, got, wanted, what);
  if (request.varies) {
    const shape = ({ content, messages, contents }) => (content ?? messages ?? contents).map((block) => Object.keys(block));
    assert.deepEqual(shape(got.result), shape(wanted.result), what);
  } else if (wanted.result.isError) {
    assert.equal(got.result.isError, true, what);
    assert.equal(got.code, "EXECUTION_ERROR", what);
    assert.equal(text(got.result), text(wanted.result), what);
  } else {
    assert.deepEqual(got.result, wanted.result, what);
  }
}

// Questions bear the name of the server that asks. The id of one that leads to a page
// belongs to revision 2025-11-25.
function compareQuestions({ server, asks, samples }, got, wanted, what) {
  assert.equal(got.asked.length, wanted.asked.length, `${what}: ${JSON.stringify(got)}`);
  assert.equal(got.sampled.length, wanted.sampled.length, what);
  if (asks) {
    const [{ _meta, message, mode, elicitationId, ...asked }] = got.asked;
    const [{ _meta: _, message: __, mode: ___, elicitationId: ____, ...other }] = wanted.asked;
    assert.equal(message, `[${server}] ${asks}`, what);
    assert.deepEqual(asked, other, what);
  }
  if (samples) {
    assert.equal(got.sampled[0].maxTokens, samples, what);
    assert.deepEqual(got.sampled[0].messages, wanted.sampled[0].messages, what);
    assert.equal(got.sampled[0].systemPrompt, `[${server}] ${wanted.sampled[0].systemPrompt}`, what);
  }
}
