// The client of mcpd lsp: a language server for each folder of the workspace that has files of mcpd,
// and the commands of its code lenses.
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { callArguments, findProgram, notAnObject, type RunTests, skeleton, testArguments, type TryTool } from "./commands";

const clients = new Map<string, LanguageClient>();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("mcpd.runTests", (lens: RunTests) => runTests(lens)),
    vscode.commands.registerCommand("mcpd.tryTool", (lens: TryTool) => tryTool(lens)),
    vscode.commands.registerCommand("mcpd.restart", restart),
    vscode.workspace.onDidChangeWorkspaceFolders(restart),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("mcpd")) return restart();
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  const ended = [...clients.values()].map((client) => client.stop());
  clients.clear();
  await Promise.allSettled(ended);
}

// Restarts run one after the other.
let restarting: Promise<void> = Promise.resolve();

function restart(): Promise<void> {
  restarting = restarting.then(async () => {
    await deactivate();
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      if (folder.uri.scheme === "file" && hasFiles(folder)) await start(folder);
    }
  });
  return restarting;
}

/** Whether mcpd has files in a folder, or its settings say where they are. */
function hasFiles(folder: vscode.WorkspaceFolder): boolean {
  const names = ["mcpd.hcl", "tools.d"].map((name) => path.join(folder.uri.fsPath, name));
  return settings(folder).flags.length > 0 || names.some((name) => fs.existsSync(name));
}

/** The setting mcpd.path, the program that it names, and the flags of mcpd. */
function settings(folder: vscode.WorkspaceFolder): { name: string; program: string | undefined; flags: string[] } {
  const values = vscode.workspace.getConfiguration("mcpd", folder.uri);
  const name = values.get<string>("path") || "mcpd";
  const folders = (vscode.workspace.workspaceFolders ?? []).map((one) => one.uri.fsPath);
  return { name, program: findProgram(name, folders), flags: values.get<string[]>("arguments") ?? [] };
}

/** Says why mcpd does not start. */
async function explain(reason: string): Promise<void> {
  const choice = await vscode.window.showErrorMessage(`mcpd does not start: ${reason}`, "Open settings");
  if (choice) await vscode.commands.executeCommand("workbench.action.openSettings", "mcpd.path");
}

const notFound = (name: string) => `"${name}" is neither the absolute path of a program nor a program in PATH, outside of the workspace`;

async function start(folder: vscode.WorkspaceFolder): Promise<void> {
  const { name, program, flags } = settings(folder);
  if (!program) return explain(notFound(name));
  const inFolder = (pattern: string) => ({ scheme: "file", pattern: { baseUri: folder.uri.toString(), pattern } });
  const client = new LanguageClient(
    `mcpd ${folder.uri.toString()}`,
    `mcpd (${folder.name})`,
    { command: program, args: ["lsp", ...flags], options: { cwd: folder.uri.fsPath } },
    {
      documentSelector: [inFolder("**/*.{hcl,mcpdvars}"), inFolder("**/*.{js,mjs,ts,mts}")],
      workspaceFolder: folder,
    },
  );
  clients.set(folder.uri.toString(), client);
  try {
    await client.start();
  } catch {
    await explain(`is "${program}" installed?`);
  }
}

/** The folder of the file with the lens. */
function currentFolder(): vscode.WorkspaceFolder | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document && vscode.workspace.getWorkspaceFolder(document.uri);
}

async function runTests(lens: RunTests): Promise<void> {
  const folder = currentFolder();
  if (folder) await run(folder, "test", testArguments(lens, settings(folder).flags));
}

async function tryTool(lens: TryTool): Promise<void> {
  const folder = currentFolder();
  if (!folder) return;
  let json = "{}";
  if (lens.inputs.length > 0) {
    const all = lens.inputs.map((input) => `${input.name}${input.required ? "" : "?"}: ${input.type || "object"}`).join(", ");
    const written = await vscode.window.showInputBox({ title: `Try ${lens.name}`, prompt: all, value: skeleton(lens), validateInput: notAnObject });
    if (written === undefined) return;
    json = written;
  }
  await run(folder, lens.name, callArguments(lens, json, settings(folder).flags));
}

/** Runs mcpd in a terminal, without a shell. It reads saved files. */
async function run(folder: vscode.WorkspaceFolder, name: string, args: string[]): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    await vscode.window.showWarningMessage("mcpd runs tests and tools only in a trusted workspace.");
    return;
  }
  const { name: setting, program } = settings(folder);
  if (!program) return explain(notFound(setting));
  await vscode.workspace.saveAll(false);
  const execution = new vscode.ProcessExecution(program, args, { cwd: folder.uri.fsPath });
  const task = new vscode.Task({ type: "mcpd", arguments: args }, folder, name, "mcpd", execution);
  task.presentationOptions = { clear: true, panel: vscode.TaskPanelKind.Shared };
  await vscode.tasks.executeTask(task);
}
