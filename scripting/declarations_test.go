package scripting

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// declarations is what editors are told of the globals.
const declarations = "../examples/typescript/tools.d/mcpd.d.ts"

func allKinds() []Kind { return []Kind{Tool, Hook, Resource, Prompt, Complete} }

// The engine's own JSON and RegExp only have bounds here.
func TestEditorsAreToldOfEveryGlobalAndOfNoOther(t *testing.T) {
	text, err := os.ReadFile(declarations)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, found := range regexp.MustCompile(`(?m)^declare (?:const|function|class) (\w+)`).FindAllStringSubmatch(string(text), -1) {
		declared = append(declared, found[1])
	}
	var installed []string
	for _, kind := range allKinds() {
		for _, name := range globals(kind, append(askGrants(), Object{"http", "crm"}, Object{"fs", "logs"}, Object{"env", "LANG"}, Object{"secrets", "key"}, Object{"kv", "notes"}, Object{"exec", "git"}, Object{"sql", "shop"}, Object{"tools", "crm_*"}, Object{"modules", "ledger"})) {
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
		t.Errorf("the declarations are no TypeScript: %v", problems)
	}
}

func TestEditorsAreToldOfTheMembersOfGlobals(t *testing.T) {
	data, err := os.ReadFile(declarations)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, kind := range allKinds() {
		c := compilation{src: Source{Kind: kind, Objects: []Object{{"http", "crm"}, {"kv", "notes"}, {"sql", "shop"}, {"sql.write", "shop"}}}}
		for _, object := range []string{"log", "console", "content", "crypto", "crypto.subtle", "agent", "call", "event", "http.crm", "kv.notes", "sql.shop", "csv", "dates", "numbers", "yaml", "toml"} {
			names, _ := c.fixedMembers(object)
			for _, name := range names {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
					t.Errorf("%s.%s is not declared", object, name)
				}
			}
		}
	}
	for _, class := range []string{"URL", "URLSearchParams", "TextEncoder", "TextDecoder"} {
		r := openRun(t)
		o := r.needed(class).Get("prototype").ToObject(r.rt)
		installed := slices.DeleteFunc(o.GetOwnPropertyNames(), func(name string) bool { return name == "constructor" })
		slices.Sort(installed)
		body := regexp.MustCompile(`(?s)declare class ` + class + ` \{(.*?)\n\}`).FindStringSubmatch(text)[1]
		var declared []string
		for _, found := range regexp.MustCompile(`(?m)^  (?:readonly )?(\w+)(?:\(|:)`).FindAllStringSubmatch(body, -1) {
			if found[1] != "constructor" {
				declared = append(declared, found[1])
			}
		}
		slices.Sort(declared)
		if diff := cmp.Diff(installed, declared); diff != "" {
			t.Errorf("%s (-installed +declared):\n%s", class, diff)
		}
	}
}
