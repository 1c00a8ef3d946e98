// A client without an editor plays a session with the program in the variable MCPD.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { callArguments, skeleton, testArguments } from "../dist/test/commands.mjs";

const require = createRequire(import.meta.url);
const rpc = require("vscode-jsonrpc/node");
const lsp = require("vscode-languageserver-protocol");
const { TextDocument } = require("vscode-languageserver-textdocument");

const mcpd = process.env.MCPD ?? "mcpd";
const root = mkdtempSync(path.join(tmpdir(), "mcpd-"));
after(() => rmSync(root, { recursive: true }));

const files = {
  "mcpd.hcl": "",
  "tools.d/order.hcl": `tool "order" {
  description = "Returns the label of an order."
  read_only   = true

  input "id" { type = string }
  output "label" { type = string }

  run = file("order.ts")
}

policy "no_empty" {
  tools  = ["order"]
  deny   = "args.id == ''"
  reason = "Write a number."
}

test "a label" {
  tool  = "order"
  input = { id = "O-7" }
  expect { output = { label = "order O-7" } }
}
`,
  "tools.d/order.ts": `interface Input {
  id: string;
}

export default async function (input: Input, ctx: any) {
  return { label: \`order \${input.id}\` };
}
`,
};

mkdirSync(path.join(root, "tools.d"));
for (const [name, text] of Object.entries(files)) writeFileSync(path.join(root, name), text);
const uriOf = (name) => pathToFileURL(path.join(root, name)).href;
const run = (args) => execFileSync(mcpd, args, { cwd: root, encoding: "utf8" });

test("a session: open, break, fix, complete, rename, lenses", async () => {
  const server = spawn(mcpd, ["lsp", "--stdio"], { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));
  const documents = new Map();
  const arrived = []; // diagnostics that no step has taken, and the steps that wait for some
  let waiting = [];
  connection.onNotification("textDocument/publishDiagnostics", (published) => {
    arrived.push(published);
    waiting.forEach((wake) => wake());
  });
  connection.onRequest("client/registerCapability", () => null);
  connection.listen();

  /** The diagnostics of a version of a document. */
  async function diagnostics(name) {
    const { uri, version } = documents.get(name);
    for (;;) {
      const found = arrived.find((published) => published.uri === uri && published.version === version);
      if (found) return found.diagnostics;
      await new Promise((resolve) => (waiting = [resolve]));
    }
  }
  async function open(name, languageId) {
    const document = TextDocument.create(uriOf(name), languageId, 1, files[name]);
    documents.set(name, document);
    await connection.sendNotification("textDocument/didOpen", { textDocument: { uri: document.uri, languageId, version: 1, text: document.getText() } });
  }
  async function replace(name, before, text) {
    const document = documents.get(name);
    const start = document.getText().indexOf(before);
    assert.ok(start >= 0, before);
    const change = { range: { start: document.positionAt(start), end: document.positionAt(start + before.length) }, text };
    documents.set(name, TextDocument.update(document, [change], document.version + 1));
    await connection.sendNotification("textDocument/didChange", { textDocument: { uri: document.uri, version: document.version }, contentChanges: [change] });
  }
  function after(name, text) {
    const document = documents.get(name);
    return { textDocument: { uri: document.uri }, position: document.positionAt(document.getText().indexOf(text) + text.length) };
  }

  const { capabilities } = await connection.sendRequest("initialize", {
    processId: process.pid,
    rootUri: pathToFileURL(root).href,
    capabilities: {
      workspace: { workspaceEdit: { documentChanges: true }, didChangeWatchedFiles: { dynamicRegistration: true } },
      textDocument: { rename: { prepareSupport: true }, completion: { completionItem: { snippetSupport: true } } },
    },
  });
  assert.deepEqual(capabilities.renameProvider, { prepareProvider: true });
  await connection.sendNotification("initialized", {});

  await open("tools.d/order.hcl", "mcpd");
  await open("tools.d/order.ts", "typescript");
  assert.deepEqual(await diagnostics("tools.d/order.hcl"), []);

  // Break, and fix with the code action.
  await replace("tools.d/order.hcl", "description", "descriptoin");
  const [problem] = await diagnostics("tools.d/order.hcl");
  assert.equal(problem.severity, lsp.DiagnosticSeverity.Error);
  const [action] = await connection.sendRequest("textDocument/codeAction", { textDocument: { uri: uriOf("tools.d/order.hcl") }, range: problem.range, context: { diagnostics: [problem] } });
  const [edit] = action.edit.changes[uriOf("tools.d/order.hcl")];
  assert.equal(edit.newText, "description");
  await replace("tools.d/order.hcl", "descriptoin", edit.newText);
  assert.deepEqual(await diagnostics("tools.d/order.hcl"), []);

  // Complete in the script file.
  await replace("tools.d/order.ts", "input.id", "input.");
  const { items } = await connection.sendRequest("textDocument/completion", after("tools.d/order.ts", "input."));
  assert.deepEqual(items.map((item) => item.label), ["id"]);
  await replace("tools.d/order.ts", "input.", "input.id");

  // Rename the input. The edits have the versions of the documents.
  assert.equal((await connection.sendRequest("textDocument/prepareRename", after("tools.d/order.ts", "input.i"))).placeholder, "id");
  const renamed = await connection.sendRequest("textDocument/rename", { ...after("tools.d/order.ts", "input.i"), newName: "number" });
  assert.deepEqual(renamed.documentChanges.map((change) => change.textDocument), [...documents.values()].map(({ uri, version }) => ({ uri, version })));
  for (const change of renamed.documentChanges) {
    const document = [...documents.values()].find(({ uri }) => uri === change.textDocument.uri);
    writeFileSync(new URL(document.uri), TextDocument.applyEdits(document, change.edits));
  }
  run(["check"]);
  run(["test"]);
  await assert.rejects(connection.sendRequest("textDocument/rename", { ...after("tools.d/order.hcl", 'tool "ord'), newName: "two words" }), /is no name of a tool/);

  // The lenses run mcpd.
  const lenses = await connection.sendRequest("textDocument/codeLens", { textDocument: { uri: uriOf("tools.d/order.hcl") } });
  assert.deepEqual(lenses.map((lens) => lens.command.title), ["Try tool", "Run 1 test", "Run test"]);
  for (const lens of lenses.slice(1)) {
    assert.match(run(testArguments(lens.command.arguments[0], [])), /1 passed/);
  }
  const [tryTool] = lenses[0].command.arguments;
  assert.equal(skeleton(tryTool), '{"id":""}');
  assert.match(run(callArguments(tryTool, '{"number": "O-8"}', [])), /order O-8/);

  // Semantic tokens cover the text.
  const tokens = await connection.sendRequest("textDocument/semanticTokens/full", { textDocument: { uri: uriOf("tools.d/order.hcl") } });
  assert.equal(tokens.data.length % 5, 0);
  assert.deepEqual(tokens.data.slice(0, 5), [0, 0, 4, capabilities.semanticTokensProvider.legend.tokenTypes.indexOf("keyword"), 0]);

  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  assert.equal(await ended, 0);
  connection.dispose();
});
