// The grammars are tested with the engine of VS Code. The grammars of JavaScript, TypeScript and SQL,
// which VS Code has, are replaced by small ones that mark a word and an unclosed string.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
const read = (name) => JSON.parse(readFileSync(new URL(`../syntaxes/${name}.tmLanguage.json`, import.meta.url), "utf8"));
const inner = (name) => ({
  scopeName: `source.${name}`,
  patterns: [
    { name: `word.${name}`, match: "\\bword\\b" },
    { name: `string.${name}`, begin: "`", end: "`" },
  ],
});
const grammars = { "source.mcpd": read("mcpd"), "source.cel": read("cel"), "source.js": inner("js"), "source.ts": inner("ts"), "source.sql": inner("sql") };
const registry = new textmate.Registry({
  onigLib: Promise.resolve({ createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns), createOnigString: (text) => new oniguruma.OnigString(text) }),
  loadGrammar: async (scope) => grammars[scope] ?? null,
});
const grammar = await registry.loadGrammar("source.mcpd");

/** The scopes of each part that is not blank, a list for each line. Neighbors with equal scopes are one part. */
function scopes(text) {
  let state = textmate.INITIAL;
  return text.split("\n").map((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    const parts = [];
    for (const token of tokens) {
      const [part, scope] = [line.slice(token.startIndex, token.endIndex), token.scopes.slice(1).join(" ")];
      if (parts.at(-1)?.[1] === scope) parts.at(-1)[0] += part;
      else parts.push([part, scope]);
    }
    return parts.map(([part, scope]) => [part.trim(), scope]).filter(([part]) => part);
  });
}

test("blocks, attributes and values", () => {
  assert.deepEqual(scopes('tool "a" { # x\n  tags = ["b", 1.5, true]\n  text = upper("a ${var.x} \\" c") // y'), [
    [["tool", "storage.type.block.mcpd"], ['"a"', "entity.name.type.label.mcpd"], ["{", ""], ["# x", "comment.line.number-sign.mcpd"]],
    [
      ["tags", "variable.other.property.mcpd"], ["=", "keyword.operator.assignment.mcpd"], ["[", ""], ['"b"', "string.quoted.double.mcpd"], [",", ""],
      ["1.5", "constant.numeric.mcpd"], [",", ""], ["true", "constant.language.mcpd"], ["]", ""],
    ],
    [
      ["text", "variable.other.property.mcpd"], ["=", "keyword.operator.assignment.mcpd"], ["upper", "entity.name.function.mcpd"], ["(", ""],
      ['"a', "string.quoted.double.mcpd"], ["${", "string.quoted.double.mcpd meta.template.mcpd punctuation.section.template.begin.mcpd"],
      ["var", "string.quoted.double.mcpd meta.template.mcpd support.variable.mcpd"], [".", "string.quoted.double.mcpd meta.template.mcpd"],
      ["x", "string.quoted.double.mcpd meta.template.mcpd variable.other.member.mcpd"],
      ["}", "string.quoted.double.mcpd meta.template.mcpd punctuation.section.template.end.mcpd"], ['\\"', "string.quoted.double.mcpd constant.character.escape.mcpd"],
      ['c"', "string.quoted.double.mcpd"], [")", ""], ["// y", "comment.line.double-slash.mcpd"],
    ],
  ]);
});

for (const [tag, language, block] of [["JS", "js", "javascript"], ["TS", "ts", "typescript"], ["SQL", "sql", "sql"]]) {
  for (const open of ["<<", "<<-"]) {
    test(`${open}${tag} ends at its tag, also after an unclosed string`, () => {
      const lines = scopes(`a {\n  run = ${open}${tag}\n    word \${x}\n    \`open\n  ${tag}\n}\nb "c" {}`);
      const embedded = `meta.embedded.block.${block}`;
      assert.deepEqual(lines[1].slice(2), [[open, "keyword.operator.heredoc.mcpd"], [tag, "keyword.control.heredoc.mcpd"]]);
      assert.deepEqual(lines[2][0], ["word", `${embedded} word.${language}`]);
      assert.deepEqual(lines[2][1], ["${x}", embedded]);
      assert.equal(lines[3].at(-1)[1], `${embedded} string.${language}`);
      assert.deepEqual(lines[4], [[tag, "keyword.control.heredoc.mcpd"]]);
      assert.deepEqual(lines[6][0], ["b", "storage.type.block.mcpd"]);
    });
  }
}

test("CEL", () => {
  const lines = scopes("x = <<CEL\n  args.id == 'a' && size(vars.y) > 2u || r'\\' in [true] // z\nCEL\ny = 1");
  const cel = "meta.embedded.block.cel";
  const found = Object.fromEntries(lines[1].map(([part, scope]) => [part, scope.replace(cel, "").trim()]));
  assert.equal(found["args"], "support.variable.cel");
  assert.equal(found["'a'"], "string.quoted.cel");
  assert.equal(found["size"], "entity.name.function.cel");
  assert.equal(found["2u"], "constant.numeric.cel");
  assert.equal(found["r'\\'"], "string.quoted.raw.cel");
  assert.equal(found["in"], "keyword.operator.word.cel");
  assert.equal(found["true"], "constant.language.cel");
  assert.equal(found["// z"], "comment.line.double-slash.cel");
  assert.equal(lines[3][0][1], "variable.other.property.mcpd");
});

test("a heredoc of text has templates, and ends at its own tag", () => {
  const lines = scopes("x = <<EOT\n  JS ${var.y}\n  JS\nEOT\ny = 1");
  assert.equal(lines[1][0][1], "string.unquoted.heredoc.mcpd");
  assert.equal(lines[1].at(-3)[0], ".");
  assert.equal(lines[2][0][1], "string.unquoted.heredoc.mcpd");
  assert.equal(lines[4][0][1], "variable.other.property.mcpd");
});
