import assert from "node:assert/strict";
import Module, { createRequire } from "node:module";
import { test } from "node:test";
import { callArguments, notAnObject, skeleton, testArguments } from "../dist/test/commands.mjs";

const hostile = `--config=x"; rm -rf / $(id) '`;

test("the arguments of mcpd keep hostile names as they are", () => {
  assert.deepEqual(testArguments({ pattern: hostile }, ["--tools", "t"]), ["test", "--tools", "t", `--run=${hostile}`]);
  assert.deepEqual(callArguments({ name: hostile, inputs: [] }, "{}", ["--tools", "t"]), ["call", "--tools", "t", "--json={}", "--", hostile]);
});

test("the skeleton has the required inputs", () => {
  const types = { a: "string", b: "number", c: "integer", d: "bool", e: "list(string)", f: "map(string)", g: "object({})", h: "any", i: "", j: "bigint" };
  const inputs = Object.entries(types).map(([name, type]) => ({ name, type, required: true }));
  inputs.push({ name: "optional", type: "string", required: false });
  assert.equal(skeleton({ name: "x", inputs }), '{"a":"","b":0,"c":0,"d":false,"e":[],"f":{},"g":{},"h":null,"i":{},"j":""}');
});

test("only JSON objects are accepted", () => {
  assert.equal(notAnObject('{"a": 1}'), undefined);
  for (const text of ["", "1", "null", "[]", "{", '"x"']) assert.ok(notAnObject(text), text);
});

// A stand-in for the editor: the extension finds no folder, and registers its commands.
test("the bundle activates without folders", async () => {
  const registered = [];
  const disposable = { dispose() {} };
  const anything = new Proxy(class {}, { get: (target, name) => (name in target ? target[name] : anything) });
  const vscode = new Proxy(
    {
      commands: { registerCommand: (name) => (registered.push(name), disposable) },
      workspace: {
        workspaceFolders: undefined,
        onDidChangeWorkspaceFolders: () => disposable,
        onDidGrantWorkspaceTrust: () => disposable,
        onDidChangeConfiguration: () => disposable,
      },
    },
    { get: (target, name) => (name in target ? target[name] : anything) },
  );
  const load = Module._load;
  Module._load = (request, ...rest) => (request === "vscode" ? vscode : load(request, ...rest));
  try {
    const extension = createRequire(import.meta.url)("../dist/extension.js");
    const context = { subscriptions: [] };
    await extension.activate(context);
    assert.deepEqual(registered, ["mcpd.runTests", "mcpd.tryTool", "mcpd.restart"]);
    assert.equal(context.subscriptions.length, 6);
    await extension.deactivate();
  } finally {
    Module._load = load;
  }
});
