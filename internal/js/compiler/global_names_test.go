package compiler

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting/source"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// declarationFile declares the globals for editors.
const declarationFile = "../../codemode/scripttypes/globals.d.ts"

func allKinds() []source.Kind {
	return []source.Kind{source.Tool, source.Hook, source.Resource, source.Prompt, source.Complete}
}

func askGrants() []source.Object {
	return []source.Object{{Kind: "ask", Name: "elicit"}, {Kind: "ask", Name: "sample"}, {Kind: "ask", Name: "roots"}, {Kind: "ask", Name: "ask"}}
}

// TestBuiltins_complete compares the names that the check knows with the names that the engine
// defines: a missing name would be an error in every script.
func TestBuiltins_complete(t *testing.T) {
	known := map[string]bool{}
	for _, name := range builtins() {
		known[name] = true
	}
	rt := goja.New()
	names, err := rt.RunString("Object.getOwnPropertyNames(globalThis).join()")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(names.String(), ",") {
		if !known[name] && name != "eval" {
			t.Errorf("%s is not among the builtins", name)
		}
	}
	for _, name := range builtins() {
		if _, err := rt.RunString("(function() { return " + name + " })()"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// JSON and RegExp of the engine only get limits.
func TestDeclarations_globals(t *testing.T) {
	text, err := os.ReadFile(declarationFile)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, found := range regexp.MustCompile(`(?m)^declare (?:const|function|class) (\w+)`).FindAllStringSubmatch(string(text), -1) {
		declared = append(declared, found[1])
	}
	var installed []string
	for _, kind := range allKinds() {
		for _, name := range globals(kind, append(askGrants(), source.Object{Kind: "http", Name: "crm"}, source.Object{Kind: "fs", Name: "logs"}, source.Object{Kind: "env", Name: "LANG"}, source.Object{Kind: "secrets", Name: "key"}, source.Object{Kind: "kv", Name: "notes"}, source.Object{Kind: "exec", Name: "git"}, source.Object{Kind: "sql", Name: "shop"}, source.Object{Kind: "tools", Name: "crm_*"}, source.Object{Kind: "modules", Name: "ledger"})) {
			if name != "JSON" && name != "RegExp" && !slices.Contains(installed, name) {
				installed = append(installed, name)
			}
		}
	}
	slices.Sort(declared)
	slices.Sort(installed)
	if diff := cmp.Diff(installed, declared); diff != "" {
		t.Errorf("-installed +declared:\n%s", diff)
	}
	if problems := esbuild.New().Transpile(transpile.Input{Source: string(text), TypeScript: true, MaxErrors: 1}).Errors; len(problems) > 0 {
		t.Errorf("the declarations are not valid TypeScript: %v", problems)
	}
}

func TestDeclarations_members(t *testing.T) {
	data, err := os.ReadFile(declarationFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, kind := range allKinds() {
		c := compilation{src: source.Source{Kind: kind, Objects: []source.Object{{Kind: "http", Name: "crm"}, {Kind: "kv", Name: "notes"}, {Kind: "sql", Name: "shop"}, {Kind: "sql.write", Name: "shop"}}}}
		for _, object := range []string{"log", "console", "content", "crypto", "crypto.subtle", "agent", "call", "event", "http.crm", "kv.notes", "sql.shop", "csv", "dates", "numbers", "yaml", "toml"} {
			names, _ := c.fixedMembers(object)
			for _, name := range names {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
					t.Errorf("%s.%s is not declared", object, name)
				}
			}
		}
	}
}
