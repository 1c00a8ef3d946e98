import assert from "node:assert/strict";
import Module, { createRequire } from "node:module";
import { test } from "node:test";
import { callArguments, findProgram, notAnObject, skeleton, testArguments } from "../dist/test/commands.mjs";

const hostile = `--config=x"; rm -rf / $(id) '`;

test("the arguments of mcpd keep hostile names as they are", () => {
  assert.deepEqual(testArguments({ pattern: hostile }, ["--tools", "t"]), ["test", "--tools", "t", `--run=${hostile}`]);
  assert.deepEqual(callArguments({ name: hostile, inputs: [] }, "{}", ["--tools", "t"]), ["call", "--tools", "t", "--json={}", "--", hostile]);
});

// A computer with these executable files, and the links from one name to another.
function computer(windows, searchPath, files, links = {}) {
  const real = (name) => Object.entries(links).reduce((found, [from, to]) => (found.startsWith(from) ? to + found.slice(from.length) : found), name);
  return { windows, searchPath, real: (name) => (files.includes(real(name)) || Object.values(links).includes(real(name)) ? real(name) : undefined) };
}

test("the program is from PATH or an absolute path, never from the workspace", () => {
  const files = ["/w/mcpd", "/w/bin/mcpd", "/w/bin/own", "/wide/mcpd", "/usr/bin/mcpd"];
  for (const [setting, searchPath, want] of [
    ["mcpd", "/usr/bin", "/usr/bin/mcpd"],
    ["mcpd", "/w/bin:/w::.:bin:/none:/usr/bin", "/usr/bin/mcpd"],
    ["mcpd", "/wide:/usr/bin", "/wide/mcpd"],
    ["mcpd", "/usr/../w/bin:/link/bin", undefined],
    ["own", "/w/bin", undefined],
    ["mcpd", "", undefined],
    ["./mcpd", "/usr/bin", undefined],
    ["../bin/mcpd", "/usr/bin", undefined],
    ["..", "/usr/bin", undefined],
    ["/opt/mcpd", "", "/opt/mcpd"],
  ]) {
    assert.equal(findProgram(setting, ["/w"], computer(false, searchPath, files, { "/link": "/w" })), want, `${setting} in ${searchPath}`);
  }
  assert.equal(findProgram("mcpd", ["/link"], computer(false, "/w/bin:/usr/bin", files, { "/link": "/w" })), "/usr/bin/mcpd");

  const windows = ["C:\\w\\mcpd.exe", "D:\\bin\\mcpd.exe"];
  for (const [setting, searchPath, want] of [
    ["mcpd", "C:\\w;.;;D:\\bin", "D:\\bin\\mcpd.exe"],
    ["mcpd.exe", "D:\\bin", "D:\\bin\\mcpd.exe"],
    ["mcpd", "C:\\w", undefined],
    ["mcpd", "C:w", undefined],
    [".\\mcpd", "D:\\bin", undefined],
    ["D:mcpd", "D:\\bin", undefined],
    ["E:\\mcpd.exe", "", "E:\\mcpd.exe"],
  ]) {
    assert.equal(findProgram(setting, ["c:\\W"], computer(true, searchPath, windows)), want, `${setting} in ${searchPath}`);
  }
});

test("the manifest takes the program only from the settings of the machine", () => {
  const manifest = createRequire(import.meta.url)("../package.json");
  assert.equal(manifest.contributes.configuration.properties["mcpd.path"].scope, "machine");
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ["mcpd.arguments"]);
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
