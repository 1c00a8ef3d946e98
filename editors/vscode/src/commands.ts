// The commands of the code lenses. They start mcpd without a shell, so that a name in a file is only a
// name.

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
