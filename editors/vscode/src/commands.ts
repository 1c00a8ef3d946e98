// The program mcpd, and its arguments for the code lenses. It starts without a shell, so that a name in a
// file is only a name.
import * as fs from "node:fs";
import * as path from "node:path";

/** What findProgram reads of the computer. */
export interface Computer {
  windows: boolean;
  /** The variable PATH. */
  searchPath: string;
  /** The real path of an existing file or folder; undefined if there is none, or a file that is not executable. */
  real(name: string): string | undefined;
}

const thisComputer: Computer = {
  windows: process.platform === "win32",
  searchPath: process.env.PATH ?? "",
  real(name) {
    try {
      if (fs.statSync(name).isFile()) fs.accessSync(name, fs.constants.X_OK);
      return fs.realpathSync(name);
    } catch {
      return undefined;
    }
  },
};

/**
 * The absolute path of the program that the setting names: an absolute path, or a name in PATH. Windows
 * searches a name in the working directory first, which is the workspace. So the extension searches PATH
 * itself, and skips folders of the workspace and relative ones.
 */
export function findProgram(setting: string, workspace: string[], computer: Computer = thisComputer): string | undefined {
  const { isAbsolute, join, relative, sep, delimiter } = computer.windows ? path.win32 : path.posix;
  if (isAbsolute(setting)) return setting;
  if (!/^[\w.-]*\w$/.test(setting)) return undefined;
  const name = computer.windows && !/\.exe$/i.test(setting) ? `${setting}.exe` : setting;
  const folders = workspace.map((folder) => computer.real(folder) ?? folder);
  const isInside = (file: string) =>
    folders.some((folder) => {
      const rest = relative(folder, file);
      return rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest);
    });
  for (const folder of computer.searchPath.split(delimiter)) {
    const found = isAbsolute(folder) ? computer.real(join(folder, name)) : undefined;
    if (found !== undefined && !isInside(found) && !isInside(join(folder, name))) return join(folder, name);
  }
  return undefined;
}

/** The argument of mcpd.runTests, as in internal/ops/lsp/lens.go. */
export interface RunTests {
  pattern: string;
}

/** The argument of mcpd.tryTool. */
export interface TryTool {
  name: string;
  inputs: { name: string; type: string; required: boolean }[];
}

/** The arguments of mcpd that run the tests of a lens. */
export function testArguments(lens: RunTests, flags: string[]): string[] {
  return ["test", ...flags, `--run=${lens.pattern}`];
}

/** The arguments of mcpd that call the tool of a lens with a JSON object. */
export function callArguments(lens: TryTool, json: string, flags: string[]): string[] {
  return ["call", ...flags, `--json=${json}`, "--", lens.name];
}

/** A JSON object with the inputs that the tool requires, to fill in. */
export function skeleton(lens: TryTool): string {
  const required = lens.inputs.filter((input) => input.required);
  return JSON.stringify(Object.fromEntries(required.map((input) => [input.name, empty(input.type)])));
}

function empty(type: string): unknown {
  switch (type.replace(/\(.*/s, "")) {
    case "string":
    case "bigint":
      return "";
    case "number":
    case "integer":
      return 0;
    case "bool":
      return false;
    case "list":
      return [];
    case "any":
      return null;
  }
  return {}; // a map, an object, or an input with field blocks
}

/** Why a text is not a JSON object, or undefined if it is one. */
export function notAnObject(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : "write a JSON object";
  } catch (error) {
    return String(error);
  }
}
